"""Vote: one person's answer to one approval."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from policy.models.approval import Approval


class Vote(models.Model):
    """Given once, never changed; void only if its giver lost the right before the call ran."""

    class Answer(models.TextChoices):
        APPROVE = "approve", "Approve"
        DENY = "deny", "Deny"

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="votes")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="votes")
    answer = models.CharField(max_length=7, choices=Answer.choices)
    reason = models.TextField(blank=True, default="")
    at = models.DateTimeField(db_default=Now())
    voided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["approval", "person"], name="one_vote_per_person_and_approval"),
            models.CheckConstraint(name="a_vote_approves_or_denies", condition=Q(answer__in=["approve", "deny"])),
            models.CheckConstraint(name="a_vote_that_denies_says_why", condition=Q(answer="approve") | ~Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"{self.answer} by {self.person}"
