"""Review: sign-off of a toolkit version before it is published."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from registry.models import ToolkitVersion


class Review(models.Model):
    """What one person said about one exact content of a draft; an edit of the draft leaves it behind."""

    class Answer(models.TextChoices):
        APPROVE = "approve"
        REFUSE = "refuse"

    version = models.ForeignKey(ToolkitVersion, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    answer = models.CharField(max_length=8, choices=Answer.choices)
    note = models.TextField(blank=True, default="")
    digest = models.CharField(max_length=71)  # of the draft as the reviewer saw it
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="a_review_names_what_was_read", condition=~Q(digest="")),
            models.CheckConstraint(name="a_refused_review_says_why", condition=Q(answer="approve") | ~Q(note="")),
            models.CheckConstraint(name="a_review_approves_or_refuses", condition=Q(answer__in=["approve", "refuse"])),
        ]

    def __str__(self) -> str:
        return f"{self.answer} by {self.reviewer}"
