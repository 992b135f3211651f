"""Questions, replays and a shadow's differences as requests and answers show them."""

from typing import Any

from rest_framework import serializers

from policy.decision import Effect
from policy.models import Difference, Replay
from policy.replays import MAX_LAST
from registry.api.bodies import Body

EFFECTS = [effect.value for effect in Effect]


class ContextBody(Body):
    """On whose behalf the agent would ask."""

    user_id = serializers.CharField(max_length=255, required=False, allow_blank=True)


class EvaluateBody(Body):
    """A question: may this agent call this tool with this input?"""

    agent = serializers.CharField(max_length=64, required=False, help_text="An agent's own key need not name it.")
    tool_id = serializers.CharField(max_length=200)
    input = serializers.DictField(required=False)
    context = ContextBody(required=False)  # type: ignore[assignment]
    revision = serializers.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        allow_null=True,
        help_text="The live one if absent; 0: defaults.",
    )


class CheckSerializer(serializers.Serializer[Any]):
    """What one check said."""

    check = serializers.CharField()
    effect = serializers.ChoiceField(choices=EFFECTS)
    reason = serializers.CharField()
    help = serializers.CharField(required=False)


class AskSerializer(serializers.Serializer[Any]):
    """Who would have to agree; times in seconds."""

    approvers = serializers.CharField(allow_blank=True)
    quorum = serializers.IntegerField()
    decide_within = serializers.IntegerField()
    run_within = serializers.IntegerField()


class LimitsSerializer(serializers.Serializer[Any]):
    """How often the agent could call the tool."""

    per_minute = serializers.IntegerField(allow_null=True)
    per_day = serializers.IntegerField(allow_null=True)
    at_once = serializers.IntegerField(allow_null=True)


class AnswerSerializer(serializers.Serializer[Any]):
    """What would be decided, and why."""

    effect = serializers.ChoiceField(choices=EFFECTS)
    rule = serializers.CharField()
    revision = serializers.IntegerField()
    reason = serializers.CharField()
    help = serializers.CharField(allow_blank=True)
    checks = CheckSerializer(many=True)
    ask = AskSerializer(required=False)
    limits = LimitsSerializer(required=False)


class DifferenceSerializer(serializers.ModelSerializer[Difference]):
    """A call that the shadow would have judged otherwise."""

    agent = serializers.CharField(source="agent.name", read_only=True)
    tool_id = serializers.CharField(source="tool_ref", read_only=True)

    class Meta:
        model = Difference
        fields = [
            "id",
            "call",
            "agent",
            "tool_id",
            "live_revision",
            "live_effect",
            "live_rule",
            "shadow_revision",
            "shadow_effect",
            "shadow_rule",
            "shadow_reason",
            "at",
        ]
        read_only_fields = fields


class ReplayBody(Body):
    """Which revision, over how many of the newest recorded calls."""

    revision = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    last = serializers.IntegerField(min_value=1, max_value=MAX_LAST)


class ReplaySerializer(serializers.ModelSerializer[Replay]):
    """How far a replay is; its result once it is done."""

    requested_by = serializers.CharField(source="requested_by.username", read_only=True)

    class Meta:
        model = Replay
        fields = [
            "id",
            "revision",
            "last",
            "state",
            "evaluated",
            "total",
            "error",
            "requested_by",
            "created_at",
            "finished_at",
        ]
        read_only_fields = fields


class WasSerializer(serializers.Serializer[Any]):
    """What was decided when the call was made."""

    effect = serializers.ChoiceField(choices=EFFECTS)
    rule = serializers.CharField()
    revision = serializers.IntegerField()


class NowSerializer(serializers.Serializer[Any]):
    """What the replayed revision says."""

    effect = serializers.ChoiceField(choices=EFFECTS)
    rule = serializers.CharField()
    reason = serializers.CharField()


class ChangedCallSerializer(serializers.Serializer[Any]):
    """A recorded call that would be decided otherwise."""

    call = serializers.UUIDField()
    agent = serializers.CharField()
    tool_id = serializers.CharField()
    at = serializers.DateTimeField()
    was = WasSerializer()
    now = NowSerializer()


class UndecidableCallSerializer(serializers.Serializer[Any]):
    """A recorded call that hangs on a value which its record masks."""

    call = serializers.UUIDField()
    agent = serializers.CharField()
    tool_id = serializers.CharField()
    at = serializers.DateTimeField()
    was = WasSerializer()
    reason = serializers.CharField()


class CountsSerializer(serializers.Serializer[Any]):
    """Counts of all calls, also of those beyond the lists."""

    newly_denied = serializers.IntegerField()
    newly_allowed = serializers.IntegerField()
    newly_asked = serializers.IntegerField()
    undecidable = serializers.IntegerField()


class AgentCountsSerializer(CountsSerializer):
    """Counts of one agent's calls."""

    agent = serializers.CharField()
    evaluated = serializers.IntegerField()


class ToolCountsSerializer(CountsSerializer):
    """Counts of one tool's calls."""

    tool_id = serializers.CharField()
    evaluated = serializers.IntegerField()


class ReplayTurnSerializer(serializers.Serializer[Any]):
    """How many calls were decided one way and would now be decided another, or the same."""

    was = serializers.CharField(help_text="An effect: allow, ask or deny.")
    now = serializers.CharField(help_text="An effect, or undecidable.")
    count = serializers.IntegerField()


class SummarySerializer(CountsSerializer):
    """Counts in all, per agent and per tool."""

    unchanged = serializers.IntegerField()
    turns = ReplayTurnSerializer(many=True)
    agents = AgentCountsSerializer(many=True)
    tools = ToolCountsSerializer(many=True)


class ReplayResultSerializer(ReplaySerializer):
    """A replay that is done: what would change. The lists hold at most 200 calls each, the newest."""

    newly_denied = ChangedCallSerializer(many=True)
    newly_allowed = ChangedCallSerializer(many=True)
    newly_asked = ChangedCallSerializer(many=True)
    undecidable = UndecidableCallSerializer(many=True)
    summary = SummarySerializer()

    class Meta(ReplaySerializer.Meta):
        fields = [
            *ReplaySerializer.Meta.fields,
            "newly_denied",
            "newly_allowed",
            "newly_asked",
            "undecidable",
            "summary",
        ]
        read_only_fields = fields
