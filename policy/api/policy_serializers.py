"""Revisions of the policy as requests and answers show them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from policy.decision import Effect
from policy.models import Revision
from policy.revisions import MAX_NOTE, digest_of, rules_of
from registry.api.bodies import Body

EFFECTS = [effect.value for effect in Effect]
MAX_TEXT = 1_000_000


class RevisionSerializer(serializers.ModelSerializer[Revision]):
    """A revision without its rules."""

    created_by = serializers.CharField(source="created_by.username", read_only=True, default=None, allow_null=True)
    activated_by = serializers.CharField(source="activated_by.username", read_only=True, default=None, allow_null=True)

    class Meta:
        model = Revision
        fields = [
            "number",
            "state",
            "note",
            "based_on",
            "digest",
            "is_shadow",
            "created_by",
            "created_at",
            "activated_by",
            "activated_at",
        ]
        read_only_fields = fields


class WholeRevisionSerializer(RevisionSerializer):
    """A revision with its rules, in a policy file's spelling, and each of them as a sentence."""

    rules = serializers.SerializerMethodField()
    sentences = serializers.SerializerMethodField()
    digest = serializers.SerializerMethodField()

    class Meta(RevisionSerializer.Meta):
        fields = [*RevisionSerializer.Meta.fields, "rules", "sentences"]
        read_only_fields = fields

    def to_representation(self, revision: Revision) -> dict[str, Any]:
        self._rules = rules_of(revision)
        return super().to_representation(revision)

    @extend_schema_field({"type": "array", "items": {"type": "object", "additionalProperties": True}})
    def get_rules(self, revision: Revision) -> list[dict[str, Any]]:
        return [rule.as_json() for rule in self._rules]

    @extend_schema_field({"type": "array", "items": {"type": "string"}})
    def get_sentences(self, revision: Revision) -> list[str]:
        return [rule.sentence for rule in self._rules]

    def get_digest(self, revision: Revision) -> str:
        """That of a draft is what it would have if it were activated now."""
        return revision.digest or digest_of(self._rules)


class RulesBody(Body):
    """The rules of a draft: as a list, or as a policy file."""

    rules = serializers.ListField(child=serializers.JSONField(), required=False, help_text="In a file's spelling.")
    text = serializers.CharField(
        max_length=MAX_TEXT, required=False, trim_whitespace=False, help_text="A policy file, YAML or JSON."
    )
    digest = serializers.CharField(
        max_length=71, required=False, help_text="What you have read; refused if the draft has changed since."
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if ("rules" in given) == ("text" in given):
            raise serializers.ValidationError("Give rules or text, one of them.")
        return given


class DraftBody(Body):
    """A new draft: its rules, or the revision it starts from."""

    rules = serializers.ListField(child=serializers.JSONField(), required=False, help_text="In a file's spelling.")
    text = serializers.CharField(
        max_length=MAX_TEXT, required=False, trim_whitespace=False, help_text="A policy file, YAML or JSON."
    )
    based_on = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        allow_null=True,
        help_text="Starts with its rules if none are given.",
    )
    note = serializers.CharField(max_length=MAX_NOTE, required=False, allow_blank=True, default="")

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "rules" in given and "text" in given:
            raise serializers.ValidationError("Give rules or text, not both.")
        return given


class ShadowBody(Body):
    """Whether the revision is judged beside the live one."""

    on = serializers.BooleanField(default=True)


class ChangeSerializer(serializers.Serializer[Any]):
    """What became of one rule."""

    kind = serializers.ChoiceField(choices=["added", "removed", "changed", "moved"])
    name = serializers.CharField()
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)
    sentence_before = serializers.CharField(allow_null=True)
    sentence_after = serializers.CharField(allow_null=True)


class RevisionDifferenceSerializer(serializers.Serializer[Any]):
    """What moving from the old revision to the new one would change; 0 is the defaults."""

    old = serializers.IntegerField()
    new = serializers.IntegerField()
    changes = ChangeSerializer(many=True)
