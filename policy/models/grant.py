"""Grant: a bounded yes for later calls, with a meter."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from policy.models.agent import Agent
from policy.models.approval import Approval
from registry.models import Tool


class Grant(models.Model):
    """So many calls of exactly this tool version, while a condition holds, until a moment; revocable at once."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="grants")
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="+")
    tool_ref = models.CharField(max_length=200)
    tool_digest = models.CharField(max_length=71)
    when = models.TextField(blank=True, default="")  # CEL over the arguments, as in a rule
    max_uses = models.PositiveIntegerField()
    used = models.PositiveIntegerField(default=0)
    until = models.DateTimeField()
    reason = models.TextField()
    approvers = models.CharField(max_length=150, blank=True, default="")  # the group its giver had to be in
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    granted_at = models.DateTimeField(db_default=Now())
    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, null=True, related_name="grants")
    revoked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="a_grant_is_never_overdrawn", condition=Q(used__lte=F("max_uses"))),
            models.CheckConstraint(name="a_grant_is_for_at_least_one_call", condition=Q(max_uses__gte=1)),
            models.CheckConstraint(name="a_grant_says_why", condition=~Q(reason="")),
            models.CheckConstraint(
                name="a_revoked_grant_names_who_did_it",
                condition=Q(revoked_at=None, revoked_by=None) | Q(revoked_at__isnull=False, revoked_by__isnull=False),
            ),
        ]
        indexes = [models.Index(fields=["agent", "tool"], name="grants_of_an_agent_and_tool")]

    def __str__(self) -> str:
        return f"{self.max_uses} calls of {self.tool_ref} by {self.agent}"
