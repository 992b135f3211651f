"""Packs as REST shows them, and how one asks for them."""

from typing import Any

from rest_framework import serializers

from execution.models import Pack
from registry.api.bodies import Body


class NewPackSerializer(Body):
    """What evidence is wanted about: one call, or the events that these filters find."""

    call = serializers.UUIDField(required=False)
    filters = serializers.DictField(
        child=serializers.CharField(max_length=500, allow_blank=True),
        required=False,
        help_text="As in the export; call.NAME narrows by a filter of /api/calls/ the calls that events are about.",
    )
    form = serializers.ChoiceField(
        choices=Pack.Form.values, default=Pack.Form.ZIP, help_text="zip: a pack of evidence; jsonl, csv: events only."
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if ("call" in given) == ("filters" in given):
            raise serializers.ValidationError({"call": ["Give either call or filters."]})
        return given


class PackSerializer(serializers.ModelSerializer[Pack]):
    """A file that is made, or was: `done` of `total` events are in it."""

    url = serializers.SerializerMethodField(help_text="Where to download it; empty until it is done.")
    call = serializers.UUIDField(source="call_id", read_only=True, allow_null=True)

    class Meta:
        model = Pack
        fields = [
            "id",
            "form",
            "call",
            "filters",
            "state",
            "total",
            "done",
            "percent",
            "size",
            "sha256",
            "error",
            "url",
            "created_at",
            "finished_at",
        ]
        read_only_fields = fields

    def get_url(self, pack: Pack) -> str:
        return f"/api/evidence/{pack.pk}/download/" if pack.state == Pack.State.DONE else ""
