"""Agents, keys and reviews as requests and answers show them."""

from typing import Any

from rest_framework import serializers

from policy.agents import MAX_OVERLAP
from policy.models import Agent, Credential, Review
from registry.api.bodies import Body


class KeySerializer(serializers.ModelSerializer[Credential]):
    """A key as it may be shown: by its public prefix."""

    last_used_at = serializers.DateTimeField(
        source="use.used_at", read_only=True, default=None, allow_null=True, help_text="To a few minutes."
    )

    class Meta:
        model = Credential
        fields = ["prefix", "label", "created_at", "expires_at", "revoked_at", "last_used_at"]
        read_only_fields = fields


class AgentSerializer(serializers.ModelSerializer[Agent]):
    """An agent and its keys, without their secrets."""

    owner = serializers.CharField(source="owner.username", read_only=True, default=None, allow_null=True)
    keys = KeySerializer(source="credentials", many=True, read_only=True)

    class Meta:
        model = Agent
        fields = ["name", "owner", "is_active", "created_at", "keys"]
        read_only_fields = fields


class NewAgentSerializer(AgentSerializer):
    """An agent at the one moment when its secrets are shown."""

    key = serializers.CharField(read_only=True)
    jwt_secret = serializers.CharField(read_only=True)

    class Meta(AgentSerializer.Meta):
        fields = [*AgentSerializer.Meta.fields, "key", "jwt_secret"]
        read_only_fields = fields


class AgentBody(Body):
    """A new agent."""

    name = serializers.CharField(max_length=64)
    owner = serializers.CharField(max_length=150, required=False, help_text="A user name; you, if absent.")
    call = serializers.ListField(child=serializers.CharField(max_length=64), max_length=200, default=list)
    serve = serializers.ListField(child=serializers.CharField(max_length=64), max_length=200, default=list)
    call_all = serializers.BooleanField(default=False)


class KeyBody(Body):
    """A further key."""

    label = serializers.CharField(max_length=100, allow_blank=True, default="")  # type: ignore[assignment]
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)


class RotationBody(Body):
    """How long the key that is replaced goes on."""

    keep_hours = serializers.IntegerField(
        min_value=0, max_value=MAX_OVERLAP.days * 24, default=24, help_text="0 ends it at once."
    )


class NewKeySerializer(serializers.Serializer[Any]):
    """A key at the one moment when it is shown."""

    key = serializers.CharField()
    prefix = serializers.CharField()


class ReviewBody(Body):
    """A reviewer's answer about a draft."""

    answer = serializers.ChoiceField(choices=Review.Answer.choices)
    note = serializers.CharField(max_length=2_000, allow_blank=True, default="")
    digest = serializers.CharField(
        max_length=71, required=False, help_text="What you have read; refused if the draft has changed since."
    )


class ReviewSerializer(serializers.ModelSerializer[Review]):
    """What one person said about one content."""

    version = serializers.CharField(source="version.__str__", read_only=True)
    reviewer = serializers.CharField(source="reviewer.username", read_only=True)

    class Meta:
        model = Review
        fields = ["version", "reviewer", "answer", "note", "digest", "created_at"]
        read_only_fields = fields
