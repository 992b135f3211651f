"""An OpenTelemetry span for each finished attempt, where OpenTelemetry is installed and someone listens."""

import contextvars
import hashlib
import logging
import os
import random
from typing import TYPE_CHECKING, Any

from execution.claim import Claim

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Tracer

logger = logging.getLogger(__name__)

NAME = "tool.execute"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

_own_id: contextvars.ContextVar[int] = contextvars.ContextVar("_own_id", default=0)
_tracer: "Tracer | None" = None
_is_settled = False  # whether we know that there is a tracer, or that there is none


def record(claim: Claim, facts: dict[str, Any]) -> None:
    """The span of an attempt, under the trace that the caller named, with the id that the tool was told."""
    tracer = _tracer if _is_settled else _find()
    if tracer is None:
        return
    from opentelemetry import trace

    told = claim.trace_id.lower()
    parent = trace.SpanContext(
        trace_id=int(told, 16) if _is_trace(told) else claim.id.int,
        span_id=int(hashlib.sha256(str(claim.id).encode()).hexdigest()[:16], 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )
    token = _own_id.set(int(facts["span_id"], 16))
    try:
        span = tracer.start_span(
            NAME,
            context=trace.set_span_in_context(trace.NonRecordingSpan(parent)),
            kind=trace.SpanKind.CLIENT,
            attributes={f"placet.{name}": value for name, value in facts.items() if name not in _ELSEWHERE},
            start_time=_nanoseconds(facts["started_at"]),
        )
    finally:
        _own_id.reset(token)
    if facts["tool_status"] != "ok":
        span.set_status(trace.Status(trace.StatusCode.ERROR, facts["tool_code"]))
    span.end(end_time=_nanoseconds(facts["finished_at"]))


def use(provider: "TracerProvider | None") -> None:
    """From now on spans go to this provider; with None, to whoever is found."""
    global _tracer, _is_settled
    _tracer, _is_settled = (provider.get_tracer("placet"), True) if provider is not None else (None, False)


def provider_for(processor: "SpanProcessor") -> "TracerProvider":
    """A provider whose spans carry the ids that tools were told in `traceparent`."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        def generate_span_id(self) -> int:
            return _own_id.get() or random.getrandbits(64) or 1

    name = os.environ.get("OTEL_SERVICE_NAME", "") or "placet"
    made = TracerProvider(id_generator=Ids(), resource=Resource.create({SERVICE_NAME: name}))
    made.add_span_processor(processor)
    return made


_ELSEWHERE = frozenset({"started_at", "finished_at", "trace_id", "span_id"})


def _find() -> "Tracer | None":
    """Asked once per process: a provider that was installed around us, or one for the endpoint that is configured."""
    global _tracer, _is_settled
    _tracer, _is_settled = _found(), True
    return _tracer


def _found() -> "Tracer | None":
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        return None
    installed = trace.get_tracer_provider()
    if isinstance(installed, TracerProvider):
        return installed.get_tracer("placet")
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        logger.warning("no spans are sent: an OTLP endpoint is set, but its exporter is not installed")
        return None
    try:
        return provider_for(BatchSpanProcessor(OTLPSpanExporter())).get_tracer("placet")
    except Exception as error:  # its settings are the operator's: said once, and not with every attempt
        logger.warning("no spans are sent: the OTLP exporter cannot be set up: %s", error)
        return None


def _is_trace(text: str) -> bool:
    return len(text) == 32 and text.strip("0") != "" and all(letter in "0123456789abcdef" for letter in text)


def _nanoseconds(moment: Any) -> int:
    return int(moment.timestamp() * 1_000_000_000)
