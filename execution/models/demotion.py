"""Demotion: a tool that overran in the web process and is served by the queue from then on."""

from django.db import models
from django.db.models.functions import Now


class Demotion(models.Model):
    """Removing the row, in the admin, lets the tool run inline again."""

    tool = models.OneToOneField("registry.Tool", on_delete=models.CASCADE, related_name="demotion")
    since = models.DateTimeField(db_default=Now())
    reason = models.CharField(max_length=200)

    def __str__(self) -> str:
        return f"{self.tool} is served by the queue"
