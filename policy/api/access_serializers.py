"""Access requests and permissions as requests and answers show them."""

from typing import Any

from rest_framework import serializers

from policy.granting import VERBS
from policy.models import AccessRequest
from registry.api.bodies import Body
from registry.models.toolkit import MAX_NAME


class AccessRequestBody(Body):
    """What an agent, or a person for an agent, asks for."""

    toolkit = serializers.CharField(max_length=MAX_NAME)
    reason = serializers.CharField(max_length=2_000, help_text="Why, for the person who decides.")
    call = serializers.UUIDField(required=False, allow_null=True, help_text="The denied call that led to it.")
    agent = serializers.CharField(
        max_length=64, required=False, help_text="For people: the agent that needs it. An agent asks for itself."
    )


class AccessRequestSerializer(serializers.ModelSerializer[AccessRequest]):
    """A request for a permission, and what became of it."""

    agent = serializers.CharField(source="agent.name", read_only=True)
    toolkit = serializers.CharField(source="toolkit.name", read_only=True)
    decided_by = serializers.CharField(source="decided_by.username", read_only=True, default=None, allow_null=True)

    class Meta:
        model = AccessRequest
        fields = [
            "id",
            "agent",
            "toolkit",
            "permission",
            "reason",
            "call",
            "requested_by",
            "state",
            "created_at",
            "decided_by",
            "decided_at",
            "note",
        ]
        read_only_fields = fields


class GrantNote(Body):
    """A word to whoever asked."""

    note = serializers.CharField(max_length=2_000, allow_blank=True, default="")


class RefusalNote(Body):
    """Why not."""

    note = serializers.CharField(max_length=2_000)


class PermissionBody(Body):
    """One permission of one holder."""

    holder = serializers.CharField(max_length=160, help_text="user:NAME, group:NAME or agent:NAME.")
    permission = serializers.ChoiceField(choices=VERBS)


class HeldSerializer(serializers.Serializer[Any]):
    """What one holder was given on the toolkit."""

    holder = serializers.CharField()
    permissions = serializers.ListField(child=serializers.ChoiceField(choices=VERBS))
