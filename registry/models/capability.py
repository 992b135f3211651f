"""Capability: a power a tool needs, such as "mail.send"."""

from django.db import models

CONTRACT_LABELS = (
    "data.read",
    "data.write",
    "network.read",
    "network.write",
    "filesystem.read",
    "filesystem.write",
    "exec.command",
    "external.side_effect",
)
CAPABILITY_PATTERN = r"\A[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+\Z"


class Capability(models.Model):
    """One of the contract's eight labels, or an own dotted one."""

    name = models.CharField(max_length=64, unique=True)
    description = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "capabilities"
        constraints = [
            models.CheckConstraint(
                name="capability_name_is_dotted_lower_case",
                condition=models.Q(name__regex=CAPABILITY_PATTERN),
                violation_error_message="A capability is lower-case words joined by dots, such as mail.send.",
            )
        ]

    def __str__(self) -> str:
        return self.name
