"""Approval: may this agent make exactly this call? The question to people, and what came of it."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from policy.models.agent import Agent
from registry.ids import new_id
from registry.models import Tool
from registry.risk import RiskLevel


class Approval(models.Model):
    """Bound to one call by its digest, used once, within two clocks. `approvals.py` alone moves it."""

    class State(models.TextChoices):
        PENDING = "pending", "Pending"
        APPROVED = "approved", "Approved"  # and not yet run
        DENIED = "denied", "Denied"
        EXPIRED = "expired", "Expired"  # nobody decided in time
        WITHDRAWN = "withdrawn", "Withdrawn"  # the call was cancelled, or what was asked is no longer what would run
        CONSUMED = "consumed", "Used"
        LAPSED = "lapsed", "Lapsed"  # approved, and not run in time
        REVOKED = "revoked", "Revoked"  # approved, and taken back before it ran

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    call = models.UUIDField(unique=True)
    call_id = models.CharField(max_length=255)
    door = models.CharField(max_length=16)
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="approvals")
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="+")
    tool_ref = models.CharField(max_length=200)
    risk = models.PositiveSmallIntegerField(choices=RiskLevel.choices)
    user_id = models.CharField(max_length=255, blank=True, default="")  # on whose behalf the agent says it asks
    trace_id = models.CharField(max_length=128, blank=True, default="")
    sealed_arguments = models.BinaryField(null=True)  # what people are shown; gone when the question is settled
    arguments_digest = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)  # of everything the answer is bound to
    revision = models.PositiveIntegerField()
    rule = models.CharField(max_length=120)
    reason = models.TextField()
    approvers = models.CharField(max_length=150, blank=True, default="")
    quorum = models.PositiveSmallIntegerField()
    run_within = models.PositiveIntegerField()
    state = models.CharField(max_length=9, choices=State.choices, default=State.PENDING)
    created_at = models.DateTimeField(db_default=Now())
    decide_by = models.DateTimeField()
    run_by = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="an_approval_asks_at_least_one_person", condition=Q(quorum__gte=1)),
            models.CheckConstraint(
                name="an_approved_call_has_a_time_to_run_in",
                condition=~Q(state__in=["approved", "consumed", "lapsed", "revoked"]) | Q(run_by__isnull=False),
            ),
            models.CheckConstraint(
                name="no_approval_was_decided_late",
                condition=Q(decided_at=None) | Q(decided_at__lte=models.F("decide_by")),
            ),
            models.CheckConstraint(
                name="an_approval_that_ended_says_when",
                condition=Q(state__in=["pending", "approved"]) | Q(ended_at__isnull=False),
            ),
            models.CheckConstraint(
                name="the_arguments_of_a_settled_approval_are_gone",
                condition=Q(sealed_arguments=None) | Q(state__in=["pending", "approved"]),
            ),
        ]
        indexes = [
            models.Index(fields=["decide_by"], name="approvals_to_decide", condition=Q(state="pending")),
            models.Index(fields=["agent"], name="approvals_pending_of_an_agent", condition=Q(state="pending")),
            models.Index(fields=["run_by"], name="approvals_to_use", condition=Q(state="approved")),
            models.Index(fields=["tool", "-id"], name="approvals_of_a_tool"),
        ]

    def __str__(self) -> str:
        return f"{self.tool_ref} for {self.agent}"

    @property
    def is_pending(self) -> bool:
        return self.state == self.State.PENDING
