"""Timeout and cancel: an endpoint keeps the time it is given, and forgives who leaves."""

import threading

from execution.cancel import Cancel
from execution.conformance.probe import Probe
from execution.conformance.verdict import Failed, NotApplicable
from execution.egress import EgressCancelled

GROUP = "Timeout/Cancel"
SHORT = 0.5  # seconds that a slow request is given
GRACE = 1.0  # seconds that it may take on top to say so
LEAVING = (0.05, 0.01, 0.003)  # seconds after which a caller leaves; the next if it was too late


def answers_in_time(probe: Probe) -> str:
    """answers within the timeout that it is told"""
    seconds = probe.first().seconds
    if seconds > probe.timeout:
        raise Failed(f"took {seconds:.1f} s of {probe.timeout:g} s")
    return f"{seconds * 1000:.0f} ms of {probe.timeout:g} s"


def ends_what_takes_too_long(probe: Probe) -> str:
    """answers timeout when its time is over"""
    probe.enveloped()
    if probe.slow is None:
        raise NotApplicable("give --slow-input, an input that takes longer than half a second")
    probe.first()
    runtime = {**probe.request()["runtime"], "timeout_ms": round(SHORT * 1000)}
    reply = probe.ask(probe.request(input=dict(probe.slow), runtime=runtime), timeout=SHORT + GRACE)
    if reply.status == "DEADLINE_EXCEEDED":
        return "answered DEADLINE_EXCEEDED"
    if reply.kind != "error/timeout":
        raise Failed(f"answered {reply.kind} after {reply.seconds:.1f} s")
    return f"answered {reply.kind} after {reply.seconds:.1f} s"


def forgives_who_leaves(probe: Probe) -> str:
    """goes on after a caller left in the middle"""
    probe.first()
    for seconds in LEAVING:
        if _is_left(probe, seconds):
            how = "the caller left"
            break
    else:
        how = "it is too quick to be left"
    probe.answered(probe.request())
    return f"{how}; the next one was answered"


def _is_left(probe: Probe, seconds: float) -> bool:
    """Whether the caller left after its request was sent and before the answer came."""
    cancel = Cancel()
    timer = threading.Timer(seconds, cancel.set)
    timer.start()
    try:
        probe.ask(probe.request(input=dict(probe.slow or probe.input)), cancel=cancel)
    except EgressCancelled as error:
        return error.is_sent
    finally:
        timer.cancel()
        timer.join()
    return False


CHECKS = (answers_in_time, ends_what_takes_too_long, forgives_who_leaves)
