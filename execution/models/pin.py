"""Pin: what a tool of an upstream server looked like when it was first used, by its digest."""

from django.db import models
from django.db.models.functions import Now


class Pin(models.Model):
    """One per tool of one version: whoever wants what the upstream made of it publishes a new version."""

    tool = models.OneToOneField("registry.Tool", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    pinned_at = models.DateTimeField(db_default=Now())
    other_digest = models.CharField(max_length=64, default="", blank=True)  # what is seen instead now, and told of

    def __str__(self) -> str:
        return f"pin of tool {self.tool_id}"
