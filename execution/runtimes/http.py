"""The http runtime: the input as the body of a POST; a text, JSON or a Tool Contract response comes back."""

import re
from typing import Any

import orjson

from execution import envelope
from execution.egress import Response
from execution.errors import CallError, ErrorCode
from execution.runtimes import upstream
from execution.runtimes.base import Invocation, RunResult
from registry import strictjson

_JSON = re.compile(r"application/(json|[a-z0-9.+-]+\+json)", re.IGNORECASE)
_CHARSET = re.compile(r';\s*charset="?([A-Za-z0-9_-]+)"?', re.IGNORECASE)
_CHARSETS = {"utf-8": "utf-8", "utf8": "utf-8", "us-ascii": "ascii", "iso-8859-1": "latin-1"}


class HttpRuntime:
    """Asks a web service that need not know anything about Placet."""

    def run(self, invocation: Invocation) -> RunResult:
        response = upstream.exchange(
            invocation,
            "POST",
            invocation.tool.runtime.options["endpoint"],
            headers={"Content-Type": "application/json", "Accept": "application/json, text/plain;q=0.9, */*;q=0.1"},
            body=orjson.dumps(dict(invocation.arguments)),
        )
        upstream.check_status(response, invocation)
        return _result(response, invocation)


def _result(response: Response, invocation: Invocation) -> RunResult:
    kind = response.headers.value("content-type")
    if _JSON.fullmatch(kind.partition(";")[0].strip()) and response.body.strip():
        value = _json(response)
    else:
        text = _text(response, kind)
        value = _contract(text) or text or None
    if envelope.is_response(value):
        return envelope.result_of(value, invocation, traffic=response.traffic)
    return RunResult(value=value, traffic=response.traffic)


def _json(response: Response) -> Any:
    try:
        return strictjson.loads(response.body, max_bytes=max(len(response.body), 1))
    except strictjson.StrictJSONError as error:
        raise CallError(
            ErrorCode.EXECUTION_FAILED,
            "The tool's answer is not the JSON it claims to be",
            developer_message=error.message,
            can_retry=True,
            traffic=response.traffic,
        ) from error


def _text(response: Response, kind: str) -> str:
    charset = _CHARSET.search(kind)
    try:
        text = response.body.decode(_CHARSETS[charset[1].lower()] if charset else "utf-8").strip()
    except (UnicodeDecodeError, KeyError):
        text = "\0"
    if "\0" in text:
        raise CallError(
            ErrorCode.EXECUTION_FAILED, "The tool's answer is neither JSON nor text", traffic=response.traffic
        )
    return text


def _contract(text: str) -> Any:
    """A response of the contract that came without its media type."""
    if not text.startswith("{"):
        return None
    try:
        value = strictjson.loads(text.encode(), max_bytes=max(len(text) * 4, 1))
    except strictjson.StrictJSONError:
        return None
    return value if envelope.is_response(value) else None
