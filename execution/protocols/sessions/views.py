"""Sessions of outside workers: open, list, close, and pull what there is to do."""

from contextlib import suppress
from typing import Any

from django.http import HttpRequest

from execution.models import Call, State
from execution.pipeline import pulling
from execution.protocols import base, shape
from execution.protocols.dialect import Answer, Refusal
from execution.protocols.sessions import translate
from execution.resuming import tool_as_called
from execution.sessions import offers, polling, pulls, register
from execution.sessions.register import Served
from policy.caller import Caller
from policy.sealedbox import Unsealable
from policy.visibility import served_toolkits, visible_toolkits
from registry.models import Toolkit

DEFAULT_LIMIT = 10
CROWDED = "1"  # seconds


class SessionsView(base.AgentView):
    """POST and GET /v1/sessions."""

    dialect = translate.DIALECT

    def post(self, request: HttpRequest, caller: Caller) -> Answer:
        toolkits = _permitted(caller, translate.serves(self.read_json(request)))
        try:
            session = register.open(caller, toolkits, toolkits.values())
        except register.TooMany as error:
            message = "You have as many sessions open as you may have; close one, or let idle ones expire"
            raise Refusal("too_many_sessions", message, status=429, headers={"Retry-After": "60"}) from error
        return Answer(body=translate.session_json(session), status=201)

    def get(self, request: HttpRequest, caller: Caller) -> Answer:
        return Answer(body={"sessions": [translate.session_json(each) for each in register.of_caller(caller)]})


class SessionView(base.AgentView):
    """GET and DELETE /v1/sessions/{id}."""

    dialect = translate.DIALECT

    def get(self, request: HttpRequest, caller: Caller, session: str) -> Answer:
        return Answer(body=translate.session_json(_own(caller, session).session))

    def delete(self, request: HttpRequest, caller: Caller, session: str) -> Answer:
        if not pulling.close(_own(caller, session).session, why="closed by its agent"):
            raise _unknown()
        return Answer(body=b"", status=204)


class RequestsView(base.AgentView):
    """GET /v1/sessions/{id}/requests?state=PENDING&wait=20: held until there is something to take."""

    dialect = translate.DIALECT

    def get(self, request: HttpRequest, caller: Caller, session: str) -> Answer:
        asked = request.GET
        state = asked.get("state", "PENDING")
        if state not in translate.STATES:
            raise shape.invalid(f"state must be one of {', '.join(translate.STATES)}")
        wait = translate.number(asked.get("wait"), "wait", 0, least=0, most=translate.MAX_WAIT)
        limit = int(translate.number(asked.get("limit"), "limit", DEFAULT_LIMIT, least=1, most=translate.MAX_LIMIT))
        after = asked.get("after")
        if after is not None and offers.key_of(after) is None:
            raise shape.invalid("after must be the requestId that the page before ended with")
        served = _own(caller, session)
        register.note_seen(served.session)
        if state == "PENDING":
            return _pending(caller, served, wait, limit, after)
        if state == "PROCESSING":
            return _processing(served, limit, after)
        return _ended(served, state, limit, after)


def _pending(caller: Caller, served: Served, wait: float, limit: int, after: str | None) -> Answer:
    key = offers.key_of(after) if after is not None else None
    page = polling.pending(caller, served, wait=wait, limit=limit, after=key)
    if page is None:
        raise _unknown()
    told = []
    for call in page.calls:
        try:
            told.append(translate.pending_json(call, tool_as_called(call)))
        except Unsealable:  # its key is gone; whoever takes it ends it, but nobody can be told what to do
            continue
    answer = _page(told, str(page.calls[-1].pk) if page.has_more else None)
    return Answer(body=answer, headers={"Retry-After": CROWDED} if page.is_crowded else {})


def _processing(served: Served, limit: int, after: str | None) -> Answer:
    held = pulls.held_by(served.session).filter(toolkit__in=served.toolkits).order_by("call_id")
    if after is not None:
        held = held.filter(call_id__gt=after)
    found = list(held.select_related("call__agent")[: limit + 1])
    told = []
    for each in found[:limit]:
        with suppress(Unsealable):  # its key is gone; the others are told of all the same
            told.append(translate.processing_json(each.call, each, tool_as_called(each.call)))
    return Answer(body=_page(told, str(found[limit - 1].call_id) if len(found) > limit else None))


def _ended(served: Served, state: str, limit: int, after: str | None) -> Answer:
    """What the session itself ended, as long as it is remembered."""
    word: State = translate.STATES[state]
    ended = Call.objects.filter(state=word, pk__in=pulls.ended_by(served.session)).order_by("pk")
    if after is not None:
        ended = ended.filter(pk__gt=after)
    found = list(ended[: limit + 1])
    return _page_answer([translate.ended_json(call, state) for call in found[:limit]], has_more=len(found) > limit)


def _page_answer(told: list[dict[str, Any]], *, has_more: bool) -> Answer:
    return Answer(body=_page(told, told[-1]["requestId"] if has_more else None))


def _page(told: list[dict[str, Any]], next: str | None) -> dict[str, Any]:
    return {"requests": told, "next": next}


def _permitted(caller: Caller, names: list[str]) -> dict[int, str]:
    """The toolkits by their numbers, if the caller may serve all of them; those it may not see are unknown to it."""
    permitted, visible = served_toolkits(caller), visible_toolkits(caller)
    known = {kit.name.lower(): kit for kit in Toolkit.objects.filter(pk__in=permitted | visible)}
    for name in names:
        toolkit = known.get(name.lower())
        if toolkit is None:
            raise Refusal("unknown_toolkit", f"There is no toolkit {name!r} that you may serve", status=404)
        if toolkit.pk not in permitted:
            message = f"You need the permission 'serve' on {toolkit.name}"
            raise Refusal("permission_denied", message, status=403)
    return {known[name.lower()].pk: known[name.lower()].name for name in names}


def _own(caller: Caller, session: str) -> Served:
    served = register.find(caller, session)
    if served is None:
        raise _unknown()
    return served


def _unknown() -> Refusal:
    return Refusal("unknown_session", "There is no such session", status=404)
