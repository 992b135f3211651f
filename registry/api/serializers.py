"""Toolkits, versions and tools as answers show them."""

from typing import Any

from django.contrib.auth import get_user_model
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from registry.api.bodies import Body
from registry.models import Tool, Toolkit, ToolkitVersion
from registry.models.toolkit import MAX_NAME
from registry.risk import RiskLevel
from registry.schemaparts import as_object

RISKS = [(level.word, level.label) for level in RiskLevel]


class Risk(serializers.ChoiceField):
    """A risk level, spelled as in manifests."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=RISKS, **kwargs)

    def to_representation(self, value: Any) -> str:
        return RiskLevel(value).word


class ToolkitSerializer(serializers.ModelSerializer[Toolkit]):
    """A toolkit; `latest_version` is the one that a call without a version means."""

    owner = serializers.CharField(source="owner.username", read_only=True, default=None, allow_null=True)
    latest_version = serializers.CharField(read_only=True, allow_null=True)

    class Meta:
        model = Toolkit
        fields = ["name", "title", "description", "owner", "latest_version", "created_at"]
        read_only_fields = fields


class ToolkitPatch(Body):
    """What can be changed of a toolkit; its name stays."""

    title = serializers.CharField(max_length=200, allow_blank=True, required=False)
    description = serializers.CharField(max_length=10_000, allow_blank=True, required=False, trim_whitespace=False)
    owner = serializers.SlugRelatedField(
        slug_field="username",
        queryset=get_user_model().objects.filter(is_active=True).exclude(username__startswith="agent:"),
        allow_null=True,
        required=False,
    )


class ToolkitBody(ToolkitPatch):
    """A new toolkit."""

    name = serializers.RegexField(
        r"\A[A-Za-z][A-Za-z0-9_]*\Z",
        max_length=MAX_NAME,
        trim_whitespace=False,
        error_messages={"invalid": "A name starts with a letter; ASCII letters, digits and underscores follow."},
    )


class VersionSerializer(serializers.ModelSerializer[ToolkitVersion]):
    """One release of a toolkit."""

    id = serializers.CharField(source="__str__", read_only=True, help_text="Such as Calculator@1.1.0.")
    toolkit = serializers.CharField(source="toolkit.name", read_only=True)
    version = serializers.CharField(read_only=True)
    risk = Risk(read_only=True)
    is_in_review = serializers.BooleanField(read_only=True)
    tools = serializers.SerializerMethodField()
    created_by = serializers.CharField(source="created_by.username", read_only=True, default=None, allow_null=True)
    edited_by = serializers.CharField(source="edited_by.username", read_only=True, default=None, allow_null=True)
    reviewed_by = serializers.CharField(source="reviewed_by.username", read_only=True, default=None, allow_null=True)
    published_by = serializers.CharField(source="published_by.username", read_only=True, default=None, allow_null=True)

    class Meta:
        model = ToolkitVersion
        fields = [
            "id",
            "toolkit",
            "version",
            "title",
            "description",
            "state",
            "risk",
            "digest",
            "tools",
            "is_in_review",
            "created_at",
            "created_by",
            "edited_by",
            "reviewed_by",
            "published_at",
            "published_by",
            "deprecated_at",
            "deprecation_note",
            "sunset_on",
            "withdrawn_at",
            "withdrawal_reason",
        ]
        read_only_fields = fields

    def get_tools(self, version: ToolkitVersion) -> list[str]:
        return [f"{version.toolkit.name}.{tool.name}@{version.version}" for tool in version.tools.all()]


class OutputSchema(serializers.DictField):
    """A schema, always told as an object."""

    def to_representation(self, value: Any) -> Any:
        return super().to_representation(as_object(value))


class RuntimeSummary(serializers.Serializer[Any]):
    """Where a tool runs; the manifest holds the rest, for those who may read it."""

    type = serializers.CharField()
    dispatch = serializers.CharField()


class ToolSerializer(serializers.ModelSerializer[Tool]):
    """One callable thing, as a caller needs to know it."""

    id = serializers.CharField(source="tool_id", read_only=True, help_text="Such as Calculator.Add@1.1.0.")
    toolkit = serializers.CharField(source="version.toolkit.name", read_only=True)
    version = serializers.CharField(source="version.version", read_only=True)
    state = serializers.ChoiceField(source="version.state", choices=ToolkitVersion.State.choices, read_only=True)
    flat_name = serializers.CharField(read_only=True)
    risk = Risk(read_only=True)
    capabilities = serializers.SerializerMethodField()
    input_schema = serializers.DictField(read_only=True)
    output_schema = OutputSchema(read_only=True, allow_null=True)
    non_inferrable = serializers.ListField(child=serializers.CharField(), read_only=True)
    annotations = serializers.DictField(read_only=True)
    icons = serializers.SerializerMethodField()
    requirements = serializers.DictField(read_only=True)
    runtime = serializers.SerializerMethodField()

    class Meta:
        model = Tool
        fields = [
            "id",
            "toolkit",
            "name",
            "version",
            "state",
            "flat_name",
            "title",
            "description",
            "risk",
            "capabilities",
            "idempotency",
            "input_schema",
            "output_schema",
            "non_inferrable",
            "annotations",
            "icons",
            "requirements",
            "runtime",
            "digest",
        ]
        read_only_fields = fields

    def get_capabilities(self, tool: Tool) -> list[str]:
        return sorted(capability.name for capability in tool.capabilities.all())

    def get_icons(self, tool: Tool) -> list[dict[str, Any]]:
        return list(tool.icons or ())

    @extend_schema_field(RuntimeSummary)
    def get_runtime(self, tool: Tool) -> dict[str, str]:
        return {"type": tool.runtime.get("type", ""), "dispatch": tool.runtime.get("dispatch", "queue")}


class Problem(serializers.Serializer[Any]):
    """One thing that is wrong, and where."""

    path = serializers.CharField()
    line = serializers.IntegerField(required=False, allow_null=True)
    reason = serializers.CharField()


class Failure(serializers.Serializer[Any]):
    """Every error under /api/."""

    code = serializers.CharField()
    message = serializers.CharField()
    details = serializers.DictField(required=False)
    errors = Problem(many=True, required=False)  # type: ignore[assignment]
