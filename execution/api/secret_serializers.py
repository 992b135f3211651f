"""Secrets as requests and answers show them: a value goes in and never comes out."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from execution.models import Secret, SecretUse, SecretVersion
from execution.secretreading import shown_value
from registry.api.bodies import Body

_VALUE = {
    "description": "A text or an object of texts. Never shown: *** stands for it, and given back keeps it as it is.",
    "oneOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}],
}


@extend_schema_field(_VALUE)
class ValueField(serializers.JSONField):
    """Any JSON value; execution/secretvalues.py says what is one."""


class SecretVersionSerializer(serializers.ModelSerializer[SecretVersion]):
    """One version, without its value."""

    keys = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = SecretVersion
        fields = ["number", "keys", "created_at", "created_by", "discarded_at"]
        read_only_fields = fields


class SecretUseSerializer(serializers.ModelSerializer[SecretUse]):
    """A tool that got the secret, and when it last did, to the minute."""

    tool = serializers.CharField(source="tool.tool_id", read_only=True)

    class Meta:
        model = SecretUse
        fields = ["tool", "used_at"]
        read_only_fields = fields


class SecretSerializer(serializers.ModelSerializer[Secret]):
    """Everything about a secret but its value."""

    value = serializers.SerializerMethodField("hidden_value")
    toolkits = serializers.SlugRelatedField[Any](slug_field="name", many=True, read_only=True)
    versions = SecretVersionSerializer(many=True, read_only=True)
    used_by = SecretUseSerializer(source="uses", many=True, read_only=True)

    class Meta:
        model = Secret
        fields = ["name", "source", "path", "description", "toolkits", "value", "versions", "used_by", "created_at"]
        read_only_fields = fields

    @extend_schema_field(
        {
            "description": "*** for every text that there is; null where nothing is stored.",
            "nullable": True,
            "oneOf": _VALUE["oneOf"],
        }
    )
    def hidden_value(self, secret: Secret) -> Any:
        return shown_value(secret)


class NewSecretBody(Body):
    """A secret to be kept here, with its value, or one that lies elsewhere."""

    name = serializers.CharField(max_length=128)
    value = ValueField(required=False, write_only=True)
    source = serializers.ChoiceField(choices=Secret.Source.choices, default=Secret.Source.STORED)  # type: ignore[assignment]
    path = serializers.CharField(max_length=400, allow_blank=True, default="")
    description = serializers.CharField(max_length=400, allow_blank=True, default="")
    toolkits = serializers.ListField(child=serializers.CharField(max_length=64), max_length=200, default=list)


class SecretBody(Body):
    """What of a secret is to be otherwise; what is not said stays."""

    value = ValueField(required=False, write_only=True)
    path = serializers.CharField(max_length=400, allow_blank=True, required=False)
    description = serializers.CharField(max_length=400, allow_blank=True, required=False)
    toolkits = serializers.ListField(child=serializers.CharField(max_length=64), max_length=200, required=False)


class SecretVersionBody(Body):
    """A new value."""

    value = ValueField(write_only=True)
