"""Approvals, grants and broken glass as requests and answers show them."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from policy import approvals
from policy.models import Approval, BreakGlass, Grant, Vote
from policy.standing import GRANT_STATES, state_of, why_not
from registry.actors import who
from registry.api.bodies import Body
from registry.risk import RiskLevel

MAX_REASON = 2_000


class VoteSerializer(serializers.ModelSerializer[Vote]):
    """One person's answer."""

    person = serializers.CharField(source="person.username", read_only=True)

    class Meta:
        model = Vote
        fields = ["person", "answer", "reason", "at", "voided_at"]
        read_only_fields = fields


class ObstacleSerializer(serializers.Serializer[Any]):
    """Why this person may not decide."""

    code = serializers.CharField()
    message = serializers.CharField()


class ApprovalSerializer(serializers.ModelSerializer[Approval]):
    """One question to people: what would run, who asks, why, until when, and what was answered."""

    agent = serializers.CharField(source="agent.name", read_only=True)
    tool_id = serializers.CharField(source="tool_ref", read_only=True)
    risk = serializers.SerializerMethodField()
    capabilities = serializers.SerializerMethodField()
    arguments = serializers.SerializerMethodField(
        help_text="Exactly as given, except what is secret; null once the question is settled."
    )
    approvers = serializers.CharField(
        read_only=True, help_text="The group that is asked; empty: whoever may approve the toolkit's calls."
    )
    reviews = VoteSerializer(source="votes", many=True, read_only=True)
    can_decide = serializers.SerializerMethodField(help_text="Whether you may decide it, now.")
    why_not = serializers.SerializerMethodField()

    class Meta:
        model = Approval
        fields = [
            "id",
            "state",
            "call",
            "call_id",
            "agent",
            "user_id",
            "tool_id",
            "risk",
            "capabilities",
            "arguments",
            "arguments_digest",
            "digest",
            "revision",
            "rule",
            "reason",
            "approvers",
            "quorum",
            "reviews",
            "created_at",
            "decide_by",
            "decided_at",
            "run_by",
            "ended_at",
            "can_decide",
            "why_not",
        ]
        read_only_fields = fields

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known: dict[UUID, approvals.ApprovalError | None] = {}

    def get_risk(self, approval: Approval) -> str:
        return RiskLevel(approval.risk).word

    def get_capabilities(self, approval: Approval) -> list[str]:
        return [capability.name for capability in approval.tool.capabilities.all()]

    @extend_schema_field({"type": "object", "nullable": True, "additionalProperties": {}})
    def get_arguments(self, approval: Approval) -> Any:
        return approvals.shown_arguments(approval)

    def get_can_decide(self, approval: Approval) -> bool:
        return self._obstacle(approval) is None

    @extend_schema_field(ObstacleSerializer(allow_null=True))
    def get_why_not(self, approval: Approval) -> dict[str, str] | None:
        obstacle = self._obstacle(approval)
        return None if obstacle is None else {"code": obstacle.code, "message": obstacle.message}

    def _obstacle(self, approval: Approval) -> approvals.ApprovalError | None:
        """Asked once per approval, since two fields tell of it."""
        if approval.pk not in self._known:
            self._known[approval.pk] = why_not(approval, who(self.context["request"]))
        return self._known[approval.pk]


class ApproveBody(Body):
    """A yes, with a reason if there is one to give."""

    reason = serializers.CharField(max_length=MAX_REASON, allow_blank=True, default="")


class ReasonBody(Body):
    """An answer that must say why."""

    reason = serializers.CharField(max_length=MAX_REASON)


class GrantBody(Body):
    """A yes for this call and a bounded one for later calls."""

    uses = serializers.IntegerField(min_value=1, max_value=10_000, help_text="How many later calls.")
    until = serializers.DateTimeField(help_text="When it ends, used up or not.")
    when = serializers.CharField(
        max_length=4_000, allow_blank=True, default="", help_text="A CEL condition, as in a rule; empty: any arguments."
    )
    reason = serializers.CharField(max_length=MAX_REASON)


class GrantSerializer(serializers.ModelSerializer[Grant]):
    """A bounded yes for later calls, and how much of it is left."""

    agent = serializers.CharField(source="agent.name", read_only=True)
    tool_id = serializers.CharField(source="tool_ref", read_only=True)
    uses = serializers.IntegerField(source="max_uses", read_only=True)
    state = serializers.SerializerMethodField()
    granted_by = serializers.CharField(source="granted_by.username", read_only=True)
    revoked_by = serializers.CharField(source="revoked_by.username", read_only=True, default=None, allow_null=True)
    approval = serializers.UUIDField(source="approval_id", read_only=True, allow_null=True)

    class Meta:
        model = Grant
        fields = [
            "id",
            "state",
            "agent",
            "tool_id",
            "when",
            "uses",
            "used",
            "until",
            "reason",
            "granted_by",
            "granted_at",
            "approval",
            "revoked_by",
            "revoked_at",
        ]
        read_only_fields = fields

    @extend_schema_field({"type": "string", "enum": list(GRANT_STATES)})
    def get_state(self, grant: Grant) -> str:
        return state_of(grant)


class BrokenGlassSerializer(serializers.ModelSerializer[BreakGlass]):
    """A call that a person let run against policy, and what others said of it afterwards."""

    agent = serializers.CharField(source="agent.name", read_only=True)
    tool_id = serializers.CharField(source="tool_ref", read_only=True)
    person = serializers.CharField(source="person.username", read_only=True)
    reviewed_by = serializers.CharField(source="reviewed_by.username", read_only=True, default=None, allow_null=True)

    class Meta:
        model = BreakGlass
        fields = [
            "id",
            "call",
            "instead_of",
            "agent",
            "tool_id",
            "person",
            "reason",
            "at",
            "verdict",
            "note",
            "reviewed_by",
            "reviewed_at",
        ]
        read_only_fields = fields


class ReviewOfBreakGlassBody(Body):
    """What one thinks of it."""

    verdict = serializers.ChoiceField(choices=BreakGlass.Verdict.choices)
    note = serializers.CharField(max_length=MAX_REASON, allow_blank=True, default="")
