"""Toolkit: a named family of tools and its owner."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower, Now

NAME_PATTERN = r"\A[A-Za-z][A-Za-z0-9_]*\Z"
MAX_NAME = 62  # a flat name is Toolkit_Tool in 64 characters


class Toolkit(models.Model):
    """What people are given permissions on; its versions hold the tools."""

    name = models.CharField(max_length=MAX_NAME)
    title = models.CharField(max_length=200, blank=True, default="")
    description = models.TextField(blank=True, default="")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="owned_toolkits"
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="toolkit_names_differ_by_more_than_case",
                violation_error_message="A toolkit of this name exists (case does not count).",
            ),
            models.CheckConstraint(
                name="toolkit_name_is_ascii_letters_digits_underscores",
                condition=models.Q(name__regex=NAME_PATTERN),
                violation_error_message="A name starts with a letter; ASCII letters, digits and underscores follow.",
            ),
        ]
        permissions = [
            ("call_toolkit", "Can call the tools"),
            ("publish_toolkit", "Can publish versions"),
            ("review_toolkit", "Can review versions before they are published"),
            ("approve_toolkit", "Can approve calls"),
            ("audit_toolkit", "Can read the evidence of calls"),
            ("serve_toolkit", "Can serve calls as an outside worker"),
        ]

    def __str__(self) -> str:
        return self.name
