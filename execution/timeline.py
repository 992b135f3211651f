"""Timeline: one call from request to result, as the evidence tells it and as the row claims it."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from audit.evidence import Evidence, Link, evidence_of
from audit.exports import detail_of
from execution.durations import Span, spans_of, spans_of_attempts
from execution.models import Attempt, Call, State
from execution.sentences import milliseconds, sentence, who

SEALED_WITHIN = timedelta(seconds=30)
TONES = {"ok": "good", "failed": "bad", "refused": "warn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One event as the page shows it."""

    link: Link
    offset: str  # since the call was received: "+12 ms"
    actor: str
    sentence: str
    detail: Any
    checks: tuple[dict[str, Any], ...]  # what each policy check said, where policy decided
    tone: str

    @property
    def event(self) -> str:
        return self.link.event.event


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Whether one thing the row says is what an event fixed when it happened; `fault` is empty if so."""

    what: str
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Everything the page of a call shows."""

    call: Call
    evidence: Evidence
    approval_evidence: Evidence | None  # of what people said, if they were asked
    moments: tuple[Moment, ...]
    attempts: tuple[Attempt, ...]
    matches: tuple[Match, ...]
    input: Any
    result: Any
    error: Any
    decision: Any
    warnings: tuple[str, ...]
    spans: tuple[Span, ...] = ()  # where the time went

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that does not verify, the chain first."""
        asked = self.approval_evidence.fault if self.approval_evidence else ""
        found = (self.evidence.fault, asked and f"approval: {asked}", *(match.fault for match in self.matches))
        return tuple(fault for fault in found if fault)

    @property
    def agreeing(self) -> str:
        """What of the row is as the events recorded it: "tool, input and result"."""
        *most, last = [match.what.replace("_", " ") for match in self.matches]
        return f"{', '.join(most)} and {last}" if most else last

    @property
    def version(self) -> str:
        """Changes whenever the page would."""
        return f"{self.call.state}-{len(self.moments)}-{int(self.evidence.is_sealed)}-{len(self.faults)}"

    @property
    def is_moving(self) -> bool:
        """Whether there is more to come: the call goes on, or has just ended and waits for its seal."""
        if self.call.is_open or self.call.finished_at is None:
            return True
        return not self.evidence.is_sealed and timezone.now() - self.call.finished_at < SEALED_WITHIN

    @property
    def duration(self) -> str:
        return milliseconds(self.call.duration_ms) if self.call.duration_ms is not None else ""


def timeline_of(call: Call) -> Timeline:
    """Reads the events after the row, so that a call that has ended is never shown without its end."""
    evidence = evidence_of("call", str(call.pk))
    asked = evidence_of("approval", str(call.approval_id)) if call.approval_id else None
    links = sorted([*evidence.links, *(asked.links if asked else ())], key=lambda link: link.event.at)
    decision = _stored(call.decision)
    checks = tuple(decision.get("checks", ())) if isinstance(decision, dict) else ()
    first = evidence.links[0].event.at if evidence.links else call.created_at
    attempts = tuple(call.attempts.order_by("number"))
    return Timeline(
        call=call,
        evidence=evidence,
        approval_evidence=asked,
        moments=tuple(_moment(link, first, checks) for link in links),
        attempts=attempts,
        matches=tuple(_matches(call, evidence)),
        input=_stored(call.input),
        result=_stored(call.result),
        error=_stored(call.error),
        decision=decision,
        warnings=tuple(_stored(call.warnings) or ()),
        spans=_spans(call, evidence, attempts),
    )


def _spans(call: Call, evidence: Evidence, attempts: tuple[Attempt, ...]) -> tuple[Span, ...]:
    told = spans_of((link.event for link in evidence.links), timezone.now())
    if attempts and not any(span.milliseconds for span in told):
        return spans_of_attempts(call.created_at, attempts)
    return told


def _moment(link: Link, first: datetime, checks: tuple[dict[str, Any], ...]) -> Moment:
    event = link.event
    detail = detail_of(event.detail)
    known = detail if isinstance(detail, dict) else {}
    return Moment(
        link=link,
        offset=f"+{milliseconds(max(0.0, (event.at - first).total_seconds() * 1_000))}",
        actor=who(event.actor),
        sentence=sentence(event.event, event.actor, known),
        detail=detail,
        checks=checks if event.event == "call.decided" else (),
        tone=_tone(event.event, event.outcome, known),
    )


def _tone(event: str, outcome: str, detail: dict[str, Any]) -> str:
    if event in ("call.succeeded", "approval.approved"):
        return "good"
    if event == "call.decided":
        return {"allow": "good", "deny": "warn", "ask": "warn"}.get(str(detail.get("effect")), "plain")
    return "plain" if outcome == "ok" else TONES.get(outcome, "plain")


def _matches(call: Call, evidence: Evidence) -> list[Match]:
    """The row against its events: what was asked, what was decided, what came of it."""
    said = {link.event.event: detail_of(link.event.detail) for link in evidence.links}
    told = {event: detail if isinstance(detail, dict) else {} for event, detail in said.items()}
    received = told.get("call.received")
    if received is None:
        return [Match(what="request", fault="no event tells that this call was received")]
    found = [
        _same("tool", call.tool_ref, received.get("tool")),
        _same("call_id", call.call_id, received.get("call_id")),
        _same("input", _sha256(call.input), received.get("input_sha256")),
    ]
    if decided := told.get("call.decided"):
        decision = _stored(call.decision)
        kept = {name: decision.get(name) for name in ("effect", "rule", "reason")} if isinstance(decision, dict) else {}
        found.append(_same("decision", kept, {name: decided.get(name) for name in ("effect", "rule", "reason")}))
    return found if call.is_open else [*found, *_end(call, told)]


def _end(call: Call, told: dict[str, dict[str, Any]]) -> list[Match]:
    settled = told.get("call.settled", {})
    if settled.get("state") == call.state:
        return [Match(what="outcome")]
    ending = told.get(f"call.{call.state}")
    if ending is None:
        return [Match(what="outcome", fault=f"the row says {call.state}, and no event tells of such an end")]
    found = [Match(what="outcome")]
    if call.state == State.SUCCEEDED:
        found.append(_same("result", _sha256(call.result), ending.get("result_sha256")))
    elif "code" in ending:
        error = _stored(call.error)
        kept = (error.get("code"), error.get("message")) if isinstance(error, dict) else None
        found.append(_same("error", kept, (ending["code"], ending.get("message"))))
    return found


def _same(what: str, stored: Any, recorded: Any) -> Match:
    fault = "" if stored == recorded else f"the stored {what.replace('_', ' ')} is not the one that the events recorded"
    return Match(what=what, fault=fault)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _stored(text: str) -> Any:
    """A stored JSON text; one that someone spoiled is shown as it is."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text
