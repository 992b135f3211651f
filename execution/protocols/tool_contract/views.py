"""Tool Contract v1: POST /contract/v1/execute."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase

from execution.errors import ErrorCode, Failure
from execution.messages import CallOutcome
from execution.protocols import base
from execution.protocols.dialect import Answer, Dialect, Refusal, seconds
from execution.protocols.tool_contract import translate
from execution.protocols.tool_contract.version import HEADER, VERSION

ENVELOPE = "envelope"


def answered(outcome: CallOutcome) -> Answer:
    """The envelope, with the HTTP status that goes with its code."""
    failure = outcome.failure
    headers = {"Deprecation": "true"} if outcome.warnings else {}
    if failure is not None and failure.retry_after_ms is not None:
        headers["Retry-After"] = seconds(failure.retry_after_ms)
    return Answer(body=translate.from_outcome(outcome), status=_status(failure), headers=headers)


def refused(refusal: Refusal) -> Answer:
    return Answer(body=translate.from_refusal(refusal), status=refusal.status, headers=refusal.headers)


class ExecuteView(base.CallView):
    """POST /contract/v1/execute; who prefers the envelope to speak alone is always answered 200."""

    dialect = Dialect(name=translate.DOOR, to_request=translate.to_request, from_outcome=answered, from_refusal=refused)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        response[HEADER] = VERSION
        if _prefers_envelope(request):
            response.status_code = 200
            response["Preference-Applied"] = ENVELOPE
        return response


def _status(failure: Failure | None) -> int:
    if failure is None:
        return 200
    # Other doors tell a wrong input from a wrong request; the contract does not.
    return 400 if translate.word(failure.code) is ErrorCode.INVALID_INPUT else failure.code.http


def _prefers_envelope(request: HttpRequest) -> bool:
    preferences = request.META.get("HTTP_PREFER", "").lower().split(",")
    return any(preference.partition(";")[0].strip() == ENVELOPE for preference in preferences)
