"""AccessRequest: an agent asks a toolkit's owner for a permission it was denied for lack of."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from policy.models.agent import Agent
from registry.models import Toolkit


class AccessRequest(models.Model):
    """Decided once, by a person who may give the permission."""

    class State(models.TextChoices):
        PENDING = "pending", "Pending"
        GRANTED = "granted", "Granted"
        REFUSED = "refused", "Refused"

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="access_requests")
    toolkit = models.ForeignKey(Toolkit, on_delete=models.PROTECT, related_name="access_requests")
    permission = models.CharField(max_length=10, default="call")
    reason = models.TextField()
    call = models.UUIDField(null=True)  # the denied call that led to it
    requested_by = models.CharField(max_length=160)  # "agent:NAME" or "user:NAME"
    state = models.CharField(max_length=7, choices=State.choices, default=State.PENDING)
    created_at = models.DateTimeField(db_default=Now())
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    note = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "toolkit", "permission"],
                condition=Q(state="pending"),
                name="one_pending_request_per_agent_toolkit_and_permission",
            ),
            models.CheckConstraint(
                name="a_decided_access_request_names_who_decided",
                condition=Q(state="pending", decided_by=None, decided_at=None)
                | (~Q(state="pending") & Q(decided_by__isnull=False, decided_at__isnull=False)),
            ),
            models.CheckConstraint(name="an_access_request_says_why", condition=~Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"{self.permission} on {self.toolkit} for {self.agent}"
