"""BreakGlass: a person let a call run that policy denied or nobody had decided, and why."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from policy.models.agent import Agent
from registry.models import Tool


class BreakGlass(models.Model):
    """Always looked at afterwards, by somebody else."""

    class Verdict(models.TextChoices):
        JUSTIFIED = "justified", "Justified"
        UNJUSTIFIED = "unjustified", "Not justified"

    call = models.UUIDField(unique=True)  # the call that runs
    instead_of = models.UUIDField(null=True)  # the denied call it repeats, if it is not the same one
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="+")
    tool_ref = models.CharField(max_length=200)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    at = models.DateTimeField(db_default=Now())
    verdict = models.CharField(max_length=11, choices=Verdict.choices, blank=True, default="")
    note = models.TextField(blank=True, default="")
    reviewed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    reviewed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        permissions = [("break_glass", "Can run a call that policy denies, with a reason")]
        constraints = [
            models.CheckConstraint(name="breaking_the_glass_needs_a_reason", condition=~Q(reason="")),
            models.CheckConstraint(
                name="a_broken_glass_is_reviewed_whole_or_not_at_all",
                condition=Q(verdict="", reviewed_by=None, reviewed_at=None)
                | (~Q(verdict="") & Q(reviewed_by__isnull=False, reviewed_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="who_broke_the_glass_does_not_review_it",
                condition=Q(reviewed_by=None) | ~Q(reviewed_by=F("person")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool_ref} by {self.person}"
