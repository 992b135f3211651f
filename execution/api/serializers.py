"""A call as REST shows it."""

from typing import Any

import orjson
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from execution.models import Attempt, Call
from execution.outcomes import answer_of, approval_url
from registry.api.bodies import Body


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    """One run of a call."""

    class Meta:
        model = Attempt
        fields = [
            "number",
            "where",
            "started_at",
            "finished_at",
            "status",
            "code",
            "detail",
            "retry_after",
            "sent",
            "received",
            "upstream_status",
        ]
        read_only_fields = fields


class CallSerializer(serializers.ModelSerializer[Call]):
    """The calling agent gets its exact result; everyone else the redacted copy."""

    agent = serializers.CharField(source="agent.name", read_only=True)
    tool_id = serializers.CharField(source="tool_ref", read_only=True)
    input = serializers.SerializerMethodField()
    result = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    decision = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    approval = serializers.SerializerMethodField()
    attempts = AttemptSerializer(many=True, read_only=True)

    class Meta:
        model = Call
        fields = [
            "id",
            "call_id",
            "state",
            "agent",
            "tool_id",
            "door",
            "dispatch",
            "input",
            "result",
            "error",
            "decision",
            "warnings",
            "attempts",
            "approval",
            "cancel_requested",
            "user_id",
            "trace_id",
            "created_at",
            "started_at",
            "finished_at",
            "duration_ms",
        ]
        read_only_fields = fields

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_input(self, call: Call) -> Any:
        return orjson.loads(call.input)

    @extend_schema_field({"description": "What the tool returned: any JSON value, or null."})
    def get_result(self, call: Call) -> Any:
        caller = self.context["request"].auth
        if caller is not None and caller.agent_id == call.agent_id:
            return answer_of(call)
        return orjson.loads(call.result) if call.result else None

    @extend_schema_field({"type": "object", "nullable": True, "additionalProperties": True})
    def get_error(self, call: Call) -> Any:
        return orjson.loads(call.error) if call.error else None

    @extend_schema_field({"type": "object", "nullable": True, "additionalProperties": True})
    def get_decision(self, call: Call) -> Any:
        return orjson.loads(call.decision) if call.decision else None

    @extend_schema_field({"type": "array", "items": {"type": "string"}})
    def get_warnings(self, call: Call) -> Any:
        return orjson.loads(call.warnings) if call.warnings else []

    @extend_schema_field({"type": "object", "nullable": True, "additionalProperties": True})
    def get_approval(self, call: Call) -> Any:
        """Where people decide about the call, and how far they are; null if nobody was asked."""
        approval = call.approval
        if approval is None:
            return None
        return {
            "id": str(approval.pk),
            "state": approval.state,
            "url": approval_url(approval.pk),
            "quorum": approval.quorum,
            "decide_by": approval.decide_by,
            "run_by": approval.run_by,
        }


class SecretSerializer(Body):
    """A secret that the caller brings."""

    id = serializers.CharField(max_length=200)
    value = serializers.CharField(max_length=65_536, trim_whitespace=False, write_only=True)


class TokenSerializer(Body):
    """A token that the caller brings."""

    id = serializers.CharField(max_length=200)
    token = serializers.CharField(max_length=65_536, trim_whitespace=False, write_only=True)


class ContextSerializer(Body):
    """What the caller brings besides the input."""

    authorization = TokenSerializer(many=True, required=False)
    secrets = SecretSerializer(many=True, required=False)
    user_id = serializers.CharField(max_length=255, required=False, allow_blank=True)


class NewCallSerializer(Body):
    """What an agent asks for."""

    tool_id = serializers.CharField(max_length=200)
    input = serializers.DictField(required=False)
    context = ContextSerializer(required=False)  # type: ignore[assignment]
    trace_id = serializers.CharField(max_length=128, required=False, allow_blank=True)


class SettlementSerializer(Body):
    """What a person found out about a call whose outcome is unknown."""

    outcome = serializers.ChoiceField(choices=["succeeded", "failed"])
    reason = serializers.CharField(min_length=3, max_length=1000)


class BreakGlassSerializer(Body):
    """Why a call must run although policy has not allowed it."""

    reason = serializers.CharField(min_length=3, max_length=1000)
    input = serializers.DictField(required=False)
