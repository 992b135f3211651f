"""Each event of a call as a sentence that someone who was not there understands."""

from collections.abc import Callable, Mapping
from typing import Any

from execution.tones import DOORS
from registry.actors import in_words as who

__all__ = ["is_told", "milliseconds", "sentence", "who"]

Detail = Mapping[str, Any]


def sentence(event: str, actor: str, detail: Detail) -> str:
    """What happened, in words; an event that has none yet is told by its name."""
    tell = _TOLD.get(event)
    return tell(actor, detail) if tell else f"{event} by {actor}"


def is_told(event: str) -> bool:
    """Whether there are words for it."""
    return event in _TOLD


def _received(actor: str, detail: Detail) -> str:
    user = f" on behalf of {detail['user_id']}" if detail.get("user_id") else ""
    door = str(detail.get("door", "?"))
    return f"{who(actor)} asked for {detail.get('tool', 'a tool')} at the {DOORS.get(door, door)} door{user}."


def _decided(actor: str, detail: Detail) -> str:
    verdict = {"allow": "allowed it", "deny": "refused it", "ask": "asked a person"}
    return f"Policy {verdict.get(str(detail.get('effect')), 'decided')}: {_whole(detail.get('reason'))}"


def _started(actor: str, detail: Detail) -> str:
    where = str(detail.get("where", ""))
    if where.startswith("session@"):
        return f"{who(actor)} took attempt {detail.get('attempt', '?')}, as an outside worker."
    place = "in the web process" if where.startswith("inline@") else f"in {where}" if where else "in a worker"
    return f"Attempt {detail.get('attempt', '?')} began {place}."


def _succeeded(actor: str, detail: Detail) -> str:
    return f"Attempt {detail.get('attempt', '?')} returned a result{_after(detail)}."


def _failed(actor: str, detail: Detail) -> str:
    lost = "The worker vanished; " if detail.get("lost") else ""
    return f"{lost}{_attempt(detail)} failed{_after(detail)}: {_why(detail)}"


def _timed_out(actor: str, detail: Detail) -> str:
    return f"{_attempt(detail)} ran out of time{_after(detail)}: {_why(detail)}"


def _cancelled(actor: str, detail: Detail) -> str:
    if detail.get("attempt"):
        return f"{_attempt(detail)} was stopped{_after(detail)}."
    return f"{who(actor)} cancelled the call before {'another attempt' if detail.get('attempts') else 'it ran'}."


def _retry(actor: str, detail: Detail) -> str:
    delay = detail.get("delay_s")
    wait = f"in {milliseconds(delay * 1_000)}" if isinstance(delay, int | float) else "later"
    return f"{_attempt(detail)} failed: {_why(detail)} Another follows {wait}."


def _settled(actor: str, detail: Detail) -> str:
    return f"{who(actor)} established that the call {detail.get('state', '?')}: {_whole(detail.get('reason'))}"


def _voted(actor: str, detail: Detail) -> str:
    verb = "approved it" if detail.get("answer") == "approve" else "denied it"
    reason = f": {_whole(detail['reason'])}" if detail.get("reason") else "."
    return f"{who(actor)} {verb}{reason}"


def _asked(actor: str, detail: Detail) -> str:
    quorum = detail.get("quorum", 1)
    people = "One person" if quorum == 1 else f"{quorum} people"
    group = f" of the group {detail['approvers']}" if detail.get("approvers") else ""
    until = str(detail.get("decide_by") or "").replace("T", " ")[:16]
    return f"{people}{group} had to agree{f' until {until} UTC' if until else ''}."


def _reopened(actor: str, detail: Detail) -> str:
    names = ", ".join(map(str, detail.get("void", ()))) or "Who agreed"
    return f"{names} may no longer approve such calls; the question is open again."


def _stale(actor: str, detail: Detail) -> str:
    return f"{_attempt(detail)} came back after another had taken over; its answer was not used."


def _auth_expired(actor: str, detail: Detail) -> str:
    return f"{_attempt(detail)} was refused with a token that had been good; it went on with a new one."


def _answered(actor: str, detail: Detail) -> str:
    if detail.get("by") == "push":
        return f"The tool sent its answer to attempt {detail.get('attempt', '?')}."
    looks = detail.get("looks", 0)
    return f"The tool had its answer to attempt {detail.get('attempt', '?')} ready at look {looks}."


def _refused(actor: str, detail: Detail) -> str:
    late = "after its time was over" if detail.get("reason") == "expired" else "after the attempt had ended"
    return f"An answer to attempt {detail.get('attempt', '?')} came {late}; it was not used."


def _attempt(detail: Detail) -> str:
    return f"Attempt {detail['attempt']}" if "attempt" in detail else "The call"


def _after(detail: Detail) -> str:
    duration = detail.get("duration_ms")
    return f" after {milliseconds(duration)}" if isinstance(duration, int | float) else ""


def _why(detail: Detail) -> str:
    return _whole(detail.get("message") or detail.get("code"))


def _whole(text: Any) -> str:
    """A reason as the end of a sentence."""
    told = str(text or "no reason was given").rstrip()
    return told if told.endswith((".", "!", "?", "…")) else f"{told}."


def milliseconds(value: float) -> str:
    """A span of time as people read it: 0 ms, 0.4 ms, 12 ms, 3.4 s, 2 min 5 s."""
    if 0 < value < 10:
        return f"{value:.1f} ms"
    if value < 1_000:
        return f"{value:.0f} ms"
    if value < 60_000:
        return f"{value / 1_000:.1f} s"
    minutes, seconds = divmod(round(value / 1_000), 60)
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


_TOLD: dict[str, Callable[[str, Detail], str]] = {
    "call.received": _received,
    "call.decided": _decided,
    "call.rejected": lambda actor, detail: f"Rejected before it was judged: {_why(detail)}",
    "call.denied": lambda actor, detail: f"Denied: {_why(detail)}",
    "call.queued": lambda actor, detail: "Put in the queue for a worker.",
    "call.started": _started,
    "call.succeeded": _succeeded,
    "call.failed": _failed,
    "call.timed_out": _timed_out,
    "call.cancelled": _cancelled,
    "call.cancel_requested": lambda actor, detail: f"{who(actor)} asked the running tool to stop.",
    "call.retry_scheduled": _retry,
    "call.auth_expired": _auth_expired,
    "call.waiting_callback": lambda actor, detail: f"{_attempt(detail)}: the tool took the call and answers later.",
    "call.answered": _answered,
    "call.callback_refused": _refused,
    "call.requeued": lambda actor, detail: f"{_attempt(detail)} was lost with its worker; the call is queued again.",
    "call.expired": lambda actor, detail: _why(detail) if detail else "No worker took it in time; it did not run.",
    "call.awaiting_approval": lambda actor, detail: "Parked until people have decided.",
    "call.approved": lambda actor, detail: "Enough people agreed; put in the queue for a worker.",
    "call.repeated": lambda actor, detail: (
        f"{who(actor)} broke the glass and let it run: {_whole(detail.get('reason'))}"
    ),
    "approval.asked": _asked,
    "approval.voted": _voted,
    "approval.approved": lambda actor, detail: "With that the call was approved.",
    "approval.denied": lambda actor, detail: "With that the call was denied.",
    "approval.expired": lambda actor, detail: "The time to decide was over.",
    "approval.lapsed": lambda actor, detail: "The time to run was over before a worker came.",
    "approval.withdrawn": lambda actor, detail: f"The question was withdrawn: {_whole(detail.get('reason'))}",
    "approval.revoked": lambda actor, detail: f"{who(actor)} took the approval back: {_whole(detail.get('reason'))}",
    "approval.reopened": _reopened,
    "approval.glass_broken": lambda actor, detail: f"{who(actor)} broke the glass: {_whole(detail.get('reason'))}",
    "approval.consumed": lambda actor, detail: "The approval was used up by this run.",
    "call.unknown": lambda actor, detail: f"{_attempt(detail)} was lost with its worker; whether it ran is unknown.",
    "call.settled": _settled,
    "call.stale_write": _stale,
}
