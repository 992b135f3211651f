"""Body: a serializer that refuses what it does not know."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

UNKNOWN = "Unknown field."
MAX_NAMED = 10  # unknown fields that an answer lists
MAX_NAME = 100  # characters of each


class Body(serializers.Serializer[Any]):
    """What a request may say. A field that is not listed, or that only answers carry, is refused by name."""

    def to_internal_value(self, data: Any) -> Any:
        refuse_unknown(self, data)
        return super().to_internal_value(data)


def refuse_unknown(serializer: serializers.Serializer[Any], data: Any) -> None:
    """Raises a ValidationError that names fields of the body that cannot be written, and counts those beyond ten."""
    if not isinstance(data, Mapping):
        return
    writable = {name for name, field in serializer.fields.items() if not field.read_only}
    if unknown := [str(name) for name in data if name not in writable]:
        told = {name[:MAX_NAME]: [UNKNOWN] for name in unknown[:MAX_NAMED]}
        if (rest := len(unknown) - MAX_NAMED) > 0:
            told["non_field_errors"] = [f"{rest} more fields are unknown."]
        raise serializers.ValidationError(told)


class Nothing(Body):
    """For requests that need no body; one that says something anyway is refused."""

    @classmethod
    def expected(cls, request: Request) -> None:
        if request.data:
            cls(data=request.data).is_valid(raise_exception=True)
