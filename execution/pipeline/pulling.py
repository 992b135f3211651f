"""Chapter two for tools that run elsewhere: a session takes a call, keeps it alive, and says how it ended."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from django.db import transaction

from audit import trail
from audit.trail import Entry
from execution import calls, crowding, recovery
from execution.claim import Claim
from execution.errors import CallError, ErrorCode
from execution.models import Call, Pull, Session, State
from execution.pipeline import perform
from execution.pipeline.perform import Ending
from execution.pipeline.steps import check_output
from execution.resuming import taken_up, tool_as_called
from execution.runtimes.base import RunResult
from execution.sessions import hearing, offers, pulls, register
from execution.sessions.register import Served
from policy import acting
from policy.caller import Caller
from policy.visibility import served_toolkits
from registry import revision
from registry.toolspec import ToolSpec

CROWDED = 2.0  # seconds at least for which a call of a crowded tool is not offered


class Unknown(Exception):
    """There is no such session of this caller, or no such request in it."""


class Gone(Exception):
    """The request is not this session's to work on; the message says why."""


def beat(caller: Caller, session: str, request: str) -> None:
    """Keeps a call that the session holds, or takes one that waits: judged again, with the next fence."""
    if (key := offers.key_of(request)) is not None and _keep(caller, session, key):
        return
    served, call = _found(caller, session, request)
    free = _kept_or_free(caller, served.session, call) if call.state == State.RUNNING else call
    if free is not None:
        _take(caller, served.session, free)


def finish(caller: Caller, session: str, request: str, ending_of: Callable[[ToolSpec], Ending]) -> None:
    """The attempt's end, as the session tells it; exactly one is taken, from whoever holds the call."""
    served, call = _found(caller, session, request)
    pull = pulls.of(call) if call.state == State.RUNNING else None
    if pull is None or pull.session_id != served.session.pk:
        _refuse_late(served.session, call)
        raise Gone(_why_not(call))
    if pulls.overdue().filter(pk=pull.pk).exists():
        expire(pull)
        raise Gone("The attempt's time is over")
    if not _end(pull, call, ending_of(tool_as_called(call))):
        _refuse_late(served.session, call)
        raise Gone("The request was answered or taken away at this very moment")


def expire(pull: Pull) -> None:
    """The attempt had its time; another follows where the tool's retries allow it."""
    call = calls.read(pull.call_id)
    if call is None or call.tool_id is None or call.state != State.RUNNING or call.fence != pull.fence:
        return
    timeout = tool_as_called(call).runtime.timeout
    message = f"The worker took the call and did not answer within {timeout:g} s"
    _end(pull, call, CallError(ErrorCode.TIMEOUT, message, details={"timeout_ms": round(timeout * 1000)}))


def close(session: Session, *, why: str) -> bool:
    """The session ends; what it held is treated as if it had fallen silent. False if it had ended already."""
    with transaction.atomic():
        if not register.hold(session):
            return False
        held = pulls.let_go(session)
        register.remove(session, why=why)
    for call in Call.objects.filter(pk__in=held).select_related("tool"):
        recovery.recover(call)
    return True


def sweep() -> None:
    """What sessions left undone: attempts past their time, and sessions that nobody uses."""
    for pull in pulls.overdue()[: pulls.BATCH]:
        expire(pull)
    for session in register.idle()[: register.BATCH]:
        close(session, why="idle")
    pulls.forget()


def _found(caller: Caller, session: str, request: str) -> tuple[Served, Call]:
    served = register.find(caller, session)
    if served is None:
        raise Unknown("There is no such session")
    call = offers.request(request, served.toolkits)
    if call is None or call.state == State.REJECTED:
        raise Unknown("There is no such request in this session")
    return served, call


def _keep(caller: Caller, session: str, call: UUID) -> bool:
    return pulls.beat(call, session, caller.agent_id, served_toolkits(caller))


def _kept_or_free(caller: Caller, session: Session, call: Call) -> Call | None:
    """None if the session holds the call after all; the call, if it is to be had; else it is another's, or over."""
    pull = pulls.of(call)
    is_own = pull is not None and pull.session_id == session.pk
    if is_own and _keep(caller, session.pk, call.pk):
        return None
    if pull is not None and pulls.overdue().filter(pk=pull.pk).exists():
        expire(pull)
    elif not is_own and hearing.is_sound() and pulls.is_silent(call):
        recovery.recover(Call.objects.select_related("tool").get(pk=call.pk))
    moved = calls.read(call.pk)
    assert moved is not None  # calls are never deleted
    if is_own:
        raise Gone("The lock was lost: its time was over, or the request was taken away")
    return moved


def _take(caller: Caller, session: Session, call: Call) -> None:
    for _ in range(perform.LOOKS):
        if call.state != State.QUEUED:
            raise Gone(_why_not(call))
        if pulls.must_hear_of_it(call, session):
            raise Gone("The session lost this request; it may take it again once it is offered again")
        if not offers.is_due(call):
            raise Gone("The request waits for its next attempt")
        if crowding.is_full(call):
            calls.defer(call, max(CROWDED, crowding.pause(call)))
            raise Gone("As many calls of this tool run as may; it is offered again soon")
        cleared = perform.clear(call)
        if cleared is not None:
            claim = _claimed(caller, session, call, cleared)
            if claim is not None:
                _enter(claim, session)
                return
        revision.renew()  # what it was judged by may have moved
        again = calls.read(call.pk)
        assert again is not None  # calls are never deleted
        call = again
    raise Gone("The request moves; look at it again")


def _claimed(caller: Caller, session: Session, call: Call, cleared: perform.Cleared) -> Claim | None:
    with transaction.atomic():
        if not register.hold(session):
            raise Unknown("There is no such session")
        claim = calls.claim(
            call,
            cleared.tool,
            cleared.agent,
            bound=cleared.digest,
            where=_where(session.pk),
            actor=f"agent:{caller.name}",
        )
        if claim is not None:
            pulls.begin(claim, session)
    register.note_seen(session)
    return claim


def _enter(claim: Claim, session: Session) -> None:
    """A tool that is left alone for a while is not run elsewhere either."""
    try:
        perform.enter(claim)
    except CallError as error:
        perform.conclude(claim, error)
        raise Gone(str(error)) from error


def _end(pull: Pull, call: Call, ending: Ending) -> bool:
    """The one way out of a session's hands: under the call's lock, while the pull is in force."""
    claim, unreadable = _claim(pull, call)
    ending = unreadable or _checked(claim, ending)
    with transaction.atomic():
        row = Call.objects.select_for_update().get(pk=call.pk)
        if row.state != State.RUNNING or row.fence != pull.fence:
            return False
        chain = trail.chain_of("call", str(call.pk), is_locked=True)
        delay = perform.conclude(replace(claim, chain=chain), ending, may_retry=not row.cancel_requested)
        if delay is not None:
            offers.announce(pull.toolkit_id)
    return True


def _checked(claim: Claim, ending: Ending) -> Ending:
    if isinstance(ending, RunResult):
        try:
            check_output(claim.tool, ending)
        except CallError as error:
            return error
    return ending


def _claim(pull: Pull, call: Call) -> tuple[Claim, CallError | None]:
    actor = f"agent:{acting.agent(pull.agent_id).name}"
    return taken_up(call, pull.fence, began=pull.claimed_at, where=_where(pull.session_id), actor=actor)


def _refuse_late(session: Session, call: Call) -> None:
    """Nothing changes, and everybody can read that an answer came; who never held the call leaves no trace in it."""
    pull = pulls.last_of(call, session)
    if pull is None:
        return
    with transaction.atomic():
        Call.objects.select_for_update().get(pk=call.pk)
        if not pulls.note_refused(pull):
            return
        detail = {"attempt": pull.fence, "where": _where(session.pk)}
        agent = acting.agent(session.agent_id).name
        is_stale = call.fence != pull.fence or call.state == State.UNKNOWN  # it was given up, not answered
        event = "call.stale_write" if is_stale else "call.callback_refused"
        entry = Entry(event=event, actor=f"agent:{agent}", outcome="refused", detail=detail)
        trail.append(trail.chain_of("call", str(call.pk), is_locked=True), entry, trace_id=call.trace_id)


def _where(session: str) -> str:
    return f"session@{session}"


def _why_not(call: Call) -> str:
    match call.state:
        case State.RUNNING:
            return "Another session works on this request"
        case State.QUEUED:
            return "No session works on this request; send a heartbeat before you do"
        case State.SUCCEEDED:
            return "The request is complete"
        case State.FAILED:
            return "The request ended with an error"
        case State.AWAITING_APPROVAL:
            return "The request waits for a person"
    return f"The request was abandoned: {State(call.state).label.lower()}"
