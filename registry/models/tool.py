"""Tool: schemas, risk and runtime binding of one callable thing."""

from typing import Any

from django.db import models
from django.db.models.functions import Lower

from registry.models.capability import Capability
from registry.models.exactjson import ExactJSONField
from registry.models.toolkit import MAX_NAME, NAME_PATTERN
from registry.models.version import ToolkitVersion, refuse_unless_draft
from registry.risk import RiskLevel


def no_parameters() -> dict[str, Any]:
    """The input schema of a tool that takes nothing."""
    return {"type": "object", "properties": {}, "additionalProperties": False}


class ToolQuerySet(models.QuerySet["Tool"]):
    """Reading of tools."""

    def callable(self) -> "ToolQuerySet":
        """Tools of published and of deprecated versions."""
        states = [ToolkitVersion.State.PUBLISHED, ToolkitVersion.State.DEPRECATED]
        return self.filter(version__state__in=states)

    def needing(self, capability: str) -> "ToolQuerySet":
        """Tools that need this capability."""
        return self.filter(capabilities__name=capability)


class Tool(models.Model):
    """One callable thing of one version, described completely."""

    class Idempotency(models.TextChoices):
        READ = "read"
        IDEMPOTENT = "idempotent"
        KEYED = "keyed"
        NON_IDEMPOTENT = "non_idempotent"

    version = models.ForeignKey(ToolkitVersion, on_delete=models.CASCADE, related_name="tools")
    position = models.PositiveIntegerField(default=0)
    name = models.CharField(max_length=MAX_NAME)
    title = models.CharField(max_length=200, blank=True, default="")
    description = models.TextField(blank=True, default="")
    risk = models.PositiveSmallIntegerField(choices=RiskLevel.choices, default=RiskLevel.LOW)
    idempotency = models.CharField(max_length=16, choices=Idempotency.choices, default=Idempotency.NON_IDEMPOTENT)
    input_schema = ExactJSONField(default=no_parameters)
    output_schema = ExactJSONField(null=True, blank=True, default=dict)  # {}: anything; None: no output
    non_inferrable = ExactJSONField(blank=True, default=list)
    annotations = ExactJSONField(blank=True, default=dict)
    requirements = ExactJSONField(blank=True, default=dict)
    runtime = ExactJSONField(default=dict)
    auth = ExactJSONField(blank=True, default=dict)
    icons = ExactJSONField(null=True, blank=True)  # None: none
    capabilities = models.ManyToManyField(Capability, blank=True, related_name="tools")
    digest = models.CharField(max_length=71, blank=True, default="")

    objects = ToolQuerySet.as_manager()

    class Meta:
        ordering = ["version", "position", "name"]
        constraints = [
            models.UniqueConstraint(
                "version",
                Lower("name"),
                name="tool_names_of_a_version_differ_by_more_than_case",
                violation_error_message="This version has a tool of this name (case does not count).",
            ),
            models.CheckConstraint(
                name="tool_name_is_ascii_letters_digits_underscores",
                condition=models.Q(name__regex=NAME_PATTERN),
                violation_error_message="A name starts with a letter; ASCII letters, digits and underscores follow.",
            ),
            models.CheckConstraint(name="tool_risk_is_on_the_scale", condition=models.Q(risk__in=RiskLevel.values)),
        ]

    def __str__(self) -> str:
        return self.tool_id

    @property
    def tool_id(self) -> str:
        """The full name, such as Calculator.Add@1.1.0."""
        return f"{self.version.toolkit.name}.{self.name}@{self.version.version}"

    @property
    def flat_name(self) -> str:
        """The name where dots are not allowed: Toolkit_Tool."""
        return f"{self.version.toolkit.name}_{self.name}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Writes a tool of a draft; a published version refuses, in words, before the database does."""
        refuse_unless_draft(self.version_id)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Deletes a tool of a draft; a published version keeps its tools."""
        refuse_unless_draft(self.version_id)
        return super().delete(*args, **kwargs)
