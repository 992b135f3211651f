"""Events, seals and the state of the evidence as answers show them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from audit.exports import FIELDS, detail_of, moment
from audit.models import Event, Seal


class Hex(serializers.Field[Any, Any, str, Any]):
    """Bytes in hex."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(read_only=True, **kwargs)

    def to_representation(self, value: Any) -> str:
        return bytes(value).hex()


HexField = extend_schema_field({"type": "string", "pattern": "^[0-9a-f]*$"})(Hex)


class EventSerializer(serializers.ModelSerializer[Event]):
    """One thing that happened to one subject; `hash` covers all of it and the `prev_hash` of the event before."""

    at = serializers.SerializerMethodField()
    detail = serializers.SerializerMethodField()
    prev_hash = HexField()
    hash = HexField()

    class Meta:
        model = Event
        fields = FIELDS
        read_only_fields = FIELDS

    @extend_schema_field({"type": "string", "format": "date-time"})
    def get_at(self, event: Event) -> str:
        return moment(event.at)

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_detail(self, event: Event) -> Any:
        return detail_of(event.detail)


class SealSerializer(serializers.ModelSerializer[Seal]):
    """A signed statement: these events, and only these, existed in this range of ids."""

    gaps = serializers.SerializerMethodField()
    merkle_root = HexField()
    prev_seal_hash = HexField()
    signature = HexField()

    class Meta:
        model = Seal
        fields = [
            "n",
            "first_id",
            "last_id",
            "count",
            "gaps",
            "merkle_root",
            "prev_seal_hash",
            "sealed_at",
            "signature",
            "key_id",
        ]
        read_only_fields = fields

    @extend_schema_field({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}})
    def get_gaps(self, seal: Seal) -> Any:
        return detail_of(seal.gaps)


class StatusSerializer(serializers.Serializer[Any]):
    """How much evidence there is, and how much of it is sealed."""

    events = serializers.IntegerField()
    last_event_id = serializers.IntegerField(allow_null=True)
    seals = serializers.IntegerField()
    last_seal = SealSerializer(allow_null=True)
    unsealed = serializers.IntegerField(help_text="Events that no seal covers yet.")
