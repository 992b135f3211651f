"""The only way out: resolve, check every address, connect to what was checked, and read no more than wanted."""

from execution.egress.errors import (
    AnswerTooLarge,
    EgressCancelled,
    EgressDenied,
    EgressError,
    EgressFailed,
    EgressTimeout,
    RedirectRefused,
)
from execution.egress.exchange import Response, request
from execution.egress.headers import Headers, merged
from execution.egress.line import connected
from execution.egress.streaming import Stream, stream
from execution.egress.tls import context as tls_context

__all__ = [
    "AnswerTooLarge",
    "EgressCancelled",
    "EgressDenied",
    "EgressError",
    "EgressFailed",
    "EgressTimeout",
    "Headers",
    "RedirectRefused",
    "Response",
    "Stream",
    "connected",
    "merged",
    "request",
    "stream",
    "tls_context",
]
