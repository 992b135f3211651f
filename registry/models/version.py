"""ToolkitVersion: one release, frozen once published."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from registry.models.source import Source
from registry.models.toolkit import Toolkit
from registry.risk import RiskLevel

LIFECYCLE = frozenset({"state", "deprecated_at", "deprecation_note", "sunset_on", "withdrawn_at", "withdrawal_reason"})


class FrozenVersion(Exception):
    """Someone tried to change what was published; a correction is a new version."""


class ToolkitVersionQuerySet(models.QuerySet["ToolkitVersion"]):
    """Reading of versions."""

    def drafts(self) -> "ToolkitVersionQuerySet":
        return self.filter(state=ToolkitVersion.State.DRAFT)

    def callable(self) -> "ToolkitVersionQuerySet":
        """Versions whose tools may be called: published, or deprecated but not yet withdrawn."""
        return self.filter(state__in=[ToolkitVersion.State.PUBLISHED, ToolkitVersion.State.DEPRECATED])

    def in_review(self) -> "ToolkitVersionQuerySet":
        """Drafts that wait for a second person."""
        return self.drafts().filter(review_requested_at__isnull=False)


class ToolkitVersion(models.Model):
    """One release x.y.z of a toolkit: all of its tools, immutable from the moment it is published."""

    class State(models.TextChoices):
        DRAFT = "draft"
        PUBLISHED = "published"
        DEPRECATED = "deprecated"
        WITHDRAWN = "withdrawn"

    toolkit = models.ForeignKey(Toolkit, on_delete=models.PROTECT, related_name="versions")
    major = models.PositiveIntegerField()
    minor = models.PositiveIntegerField()
    patch = models.PositiveIntegerField()
    title = models.CharField(max_length=200, blank=True, default="")
    description = models.TextField(blank=True, default="")
    state = models.CharField(max_length=12, choices=State.choices, default=State.DRAFT)
    digest = models.CharField(max_length=71, blank=True, default="")
    risk = models.PositiveSmallIntegerField(choices=RiskLevel.choices, default=RiskLevel.LOW)
    source = models.ForeignKey(Source, null=True, blank=True, on_delete=models.PROTECT, related_name="versions")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    edited_by = models.ForeignKey(  # the last one who changed the draft; may not review it
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    review_requested_at = models.DateTimeField(null=True, blank=True)
    reviewed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    published_at = models.DateTimeField(null=True, blank=True)
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    deprecated_at = models.DateTimeField(null=True, blank=True)
    deprecation_note = models.TextField(blank=True, default="")
    sunset_on = models.DateField(null=True, blank=True)  # from this day on (UTC) it may be withdrawn
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawal_reason = models.TextField(blank=True, default="")

    objects = ToolkitVersionQuerySet.as_manager()

    class Meta:
        ordering = ["toolkit__name", "-major", "-minor", "-patch"]
        constraints = [
            models.UniqueConstraint(
                fields=["toolkit", "major", "minor", "patch"],
                name="a_toolkit_has_each_version_once",
                violation_error_message="This version of the toolkit exists already.",
            ),
            models.CheckConstraint(
                name="version_numbers_are_not_negative", condition=Q(major__gte=0, minor__gte=0, patch__gte=0)
            ),
            models.CheckConstraint(
                name="a_published_version_has_a_digest_and_a_date",
                condition=Q(state="draft") | (~Q(digest="") & Q(published_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="a_risky_version_is_published_with_a_second_person",
                condition=Q(state="draft")
                | Q(risk__lt=RiskLevel.HIGH)
                | Q(reviewed_by__isnull=False, edited_by__isnull=True)
                | (Q(reviewed_by__isnull=False) & ~Q(reviewed_by=F("edited_by"))),
            ),
            models.CheckConstraint(
                name="a_deprecated_version_says_since_when",
                condition=~Q(state="deprecated") | Q(deprecated_at__isnull=False),
            ),
            models.CheckConstraint(
                name="a_sunset_belongs_to_a_deprecation",
                condition=Q(sunset_on__isnull=True) | Q(deprecated_at__isnull=False),
            ),
            models.CheckConstraint(
                name="a_withdrawn_version_says_why_and_since_when",
                condition=~Q(state="withdrawn") | (~Q(withdrawal_reason="") & Q(withdrawn_at__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.toolkit.name}@{self.version}"

    @property
    def version(self) -> str:
        """The numbers as people write them."""
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def is_draft(self) -> bool:
        return self.state == self.State.DRAFT

    @property
    def is_in_review(self) -> bool:
        """A draft that waits for a second person."""
        return self.is_draft and self.review_requested_at is not None

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Writes a draft; a published version refuses, in words, before the database does."""
        if not self._state.adding:
            refuse_unless_draft(self.pk)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Deletes a draft; a published version stays."""
        refuse_unless_draft(self.pk)
        return super().delete(*args, **kwargs)


def refuse_unless_draft(version_id: int) -> None:
    """Raises FrozenVersion when this version was published."""
    stored = ToolkitVersion.objects.filter(pk=version_id).exclude(state=ToolkitVersion.State.DRAFT)
    version = stored.select_related("toolkit").first()
    if version is not None:
        raise FrozenVersion(f"{version} is {version.state} and never changes; make a new version instead.")
