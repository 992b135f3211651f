"""Elicitation: one call that waits or takes long, as its MCP client was told of it."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Elicitation(models.Model):
    """Which retry comes next, what the person at the client said, and whether the end was told.

    `protocols/mcp/elicitations.py` alone writes it.
    """

    class Action(models.TextChoices):
        """What the person did when the client offered to open the approval page."""

        ACCEPT = "accept", "Opened"
        DECLINE = "decline", "Declined"
        CANCEL = "cancel", "Dismissed"

    call = models.OneToOneField("execution.Call", on_delete=models.PROTECT, primary_key=True, related_name="+")
    agent = models.ForeignKey("policy.Agent", on_delete=models.PROTECT, related_name="+", db_index=False)
    turn = models.PositiveIntegerField(default=0)  # only grows: what was sealed for a turn is good for no other one
    action = models.CharField(max_length=7, choices=Action.choices, default="", blank=True)
    # Of the call, once its client was sent away without a way back: the same call made again asks for this one's end.
    fingerprint = models.CharField(max_length=64, default="", blank=True)
    session = models.CharField(max_length=64, default="", blank=True)  # key of the one that waits to hear of it
    created_at = models.DateTimeField(db_default=Now())
    told_at = models.DateTimeField(null=True)  # when such a client got the end
    announced_at = models.DateTimeField(null=True)  # when its session heard that people decided

    class Meta:
        indexes = [
            models.Index(fields=["agent", "fingerprint"], name="links_not_yet_followed", condition=Q(told_at=None)),
            models.Index(fields=["session"], name="questions_of_a_session", condition=Q(announced_at=None)),
        ]

    def __str__(self) -> str:
        return f"elicitation for {self.call_id}"
