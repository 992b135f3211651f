"""Difference: a real call that the shadow revision would have judged otherwise."""

from django.db import models
from django.db.models.functions import Now

from policy.models.agent import Agent


class Difference(models.Model):
    """What the live and the shadow revision said about one call."""

    call = models.UUIDField()
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+")
    tool_ref = models.CharField(max_length=200)
    live_revision = models.PositiveIntegerField()
    live_effect = models.CharField(max_length=5)
    live_rule = models.CharField(max_length=120)
    shadow_revision = models.PositiveIntegerField(db_index=True)
    shadow_effect = models.CharField(max_length=5)
    shadow_rule = models.CharField(max_length=120)
    shadow_reason = models.TextField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.tool_ref}: {self.live_effect}, shadow {self.shadow_effect}"
