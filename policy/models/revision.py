"""Revision: the ordered rules of one moment, frozen once active."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Revision(models.Model):
    """A numbered policy. A draft is edited; one revision is live; a retired one can be made live again, unchanged."""

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"
        ACTIVE = "active", "Live"
        RETIRED = "retired", "Retired"

    number = models.PositiveIntegerField(primary_key=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.DRAFT)
    note = models.CharField(max_length=200, blank=True, default="", help_text="What this revision is for.")
    based_on = models.PositiveIntegerField(null=True, editable=False)
    digest = models.CharField(max_length=71, blank=True, default="")  # over its rules; set once they stay
    is_shadow = models.BooleanField(default=False)  # judged beside the live one, without effect
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    activated_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    activated_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-number"]
        permissions = [("edit_policy", "Can write, activate and roll back policy")]
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="active"), name="at_most_one_policy_revision_is_live"
            ),
            models.UniqueConstraint(
                fields=["is_shadow"], condition=Q(is_shadow=True), name="at_most_one_policy_revision_is_a_shadow"
            ),
            models.CheckConstraint(
                name="a_policy_revision_that_was_live_has_a_digest",
                condition=Q(state="draft") | (~Q(digest="") & Q(activated_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="the_live_policy_revision_is_not_its_own_shadow", condition=~Q(state="active", is_shadow=True)
            ),
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"

    @property
    def is_draft(self) -> bool:
        return self.state == self.State.DRAFT
