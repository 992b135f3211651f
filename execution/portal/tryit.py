"""Try it: a form becomes a real call, judged and recorded, through an agent of the person who sends it."""

import re
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.contrib.auth.models import User
from django.http import QueryDict
from django.urls import reverse

from execution.errors import ErrorCode
from execution.messages import CallContext, CallOutcome, CallRequest
from execution.models import Call, State
from execution.pipeline.admit import admit
from execution.portal import tryform, tryvalues
from execution.portal.callers import Mine, agents_of
from execution.portal.tryform import Field
from execution.protocols.mcp.examples import arguments
from execution.tones import LABELS
from policy import granting
from policy.caller import Caller
from policy.models import AccessRequest, Agent
from registry.models import Tool, Toolkit
from registry.schemas import compiled
from registry.toolref import ToolRef

DOOR = "portal"
WAIT = 2.0  # seconds in which most calls end; after them the page asks for itself
_CALL_ID = re.compile(r"portal-[0-9a-f-]{36}")
_HEADLINES = {
    State.SUCCEEDED: "It worked",
    State.DENIED: "Denied",
    State.REJECTED: "Refused",
    State.AWAITING_APPROVAL: "A person must agree first",
    State.QUEUED: "In the queue",
    State.RUNNING: "It runs",
    State.WAITING_CALLBACK: "The tool took it and answers later",
    State.FAILED: "The tool failed",
    State.TIMED_OUT: "The tool took too long",
    State.CANCELLED: "Cancelled",
    State.EXPIRED: "Expired; it did not run",
    State.UNKNOWN: "Nobody knows whether it ran",
}


@dataclass(slots=True, kw_only=True)
class Trial:
    """What stands in the form, and what is wrong with it."""

    fields: list[Field] | None  # None: this input can only be written as JSON
    brought: list[Field]
    json: str
    is_json: bool = False
    agent: str = ""
    call_id: str = field(default_factory=lambda: f"{DOOR}-{uuid4()}")
    arguments: dict[str, Any] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)  # that concern no single field

    @classmethod
    def fresh(cls, tool: Tool) -> "Trial":
        fields = tryform.fields_of(tool.input_schema)
        example = tryform.prefilled(arguments(tool.input_schema))
        return cls(fields=fields, brought=_brought(tool), json=example, is_json=fields is None)

    @classmethod
    def posted(cls, tool: Tool, sent: QueryDict) -> "Trial":
        """A form that was sent; a repeat of it has the same call_id."""
        trial = cls.fresh(tool)
        trial.agent, call_id = sent.get("agent", ""), sent.get("call_id", "")
        if _CALL_ID.fullmatch(call_id):
            trial.call_id = call_id
        trial.is_json = trial.fields is None or sent.get("mode") == "json"
        for each in trial.brought:
            tryvalues.read([each], sent)
        if trial.is_json:
            trial.json = sent.get("json", "")
            try:
                trial.arguments = tryvalues.read_json(trial.json)
            except ValueError as error:
                trial.errors.append(str(error))
        else:
            trial.arguments = tryvalues.read(trial.fields or [], sent)
        trial._check(tool)
        return trial

    @property
    def is_wrong(self) -> bool:
        drawn = [] if self.is_json else self.fields or []
        return bool(self.errors) or any(each.error for each in tryform.every([*drawn, *self.brought]))

    def renew(self) -> None:
        """After the call: the next one is another call."""
        self.call_id = f"{DOOR}-{uuid4()}"

    def forget(self) -> None:
        """Secrets never go back into a page."""
        for each in tryform.every([*(self.fields or []), *self.brought]):
            if each.kind == "secret":
                each.text = ""

    def _check(self, tool: Tool) -> None:
        """What the tool's schema refuses is said at its field, before anything is called."""
        if self.is_wrong:
            return
        drawn = [] if self.is_json else self.fields or []
        for violation in compiled(tool.input_schema).violations(self.arguments):
            if not tryvalues.blame(drawn, violation.path, violation.message):
                place = violation.path or violation.parameter
                self.errors.append(f"{place}: {violation.message}" if place else violation.message)


def call(person: User, tool: Tool, agent: Agent, trial: Trial) -> CallOutcome:
    """The call, made as any door makes one; the trail names the person behind the session."""
    given = {each.name: each.text for each in trial.brought}
    needs = tool.requirements
    tokens = {need["id"]: given[f"a-{place}"] for place, need in enumerate(needs.get("authorization", ()))}
    secrets = {need["id"]: given[f"s-{place}"] for place, need in enumerate(needs.get("secrets", ()))}
    session = f"session:{person.get_username()}"
    return admit(
        CallRequest(
            caller=Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential=session),
            door=DOOR,
            tool_text=tool.tool_id,
            tool_ref=ToolRef.parse(tool.tool_id),
            arguments=trial.arguments,
            context=CallContext(authorization=tokens, secrets=secrets, user_id=person.get_username()),
            call_id=trial.call_id,
            wait=WAIT,
        )
    )


def panel_after(outcome: CallOutcome) -> dict[str, Any]:
    """What became of a call; one that was turned away at the door left no row to look at."""
    row = Call.objects.select_related("agent").filter(pk=outcome.id).first()
    failure = outcome.failure
    if row is not None and (failure is None or failure.code is not ErrorCode.CALL_ID_REUSED):
        return panel_of(row)
    assert failure is not None  # what was turned away says why
    is_reused = failure.code is ErrorCode.CALL_ID_REUSED
    return {
        "state": "Refused",
        "headline": "This form was sent before, with other values" if is_reused else "Turned away at the door",
        "label": LABELS[State.REJECTED],
        "message": failure.message,
        "help": "Send it once more to make another call." if is_reused else failure.developer_message,
        "url": reverse("subject-call", args=[row.pk]) if row is not None else "",
    }


def panel_of(row: Call) -> dict[str, Any]:
    """The same of a call that is on record: its state, why, and where to follow it."""
    error = orjson.loads(row.error) if row.error else {}
    decision = orjson.loads(row.decision) if row.decision else {}
    return {
        "id": row.pk,
        "state": row.get_state_display(),
        "headline": _HEADLINES[State(row.state)],
        "label": LABELS.get(row.state, ""),
        "agent": row.agent.name,
        "is_open": row.is_open,
        "seen": row.state,
        "is_waiting": row.state == State.AWAITING_APPROVAL,
        "approval_url": reverse("subject-approval", args=[row.approval_id]) if row.approval_id else "",
        "reason": str(decision.get("reason", "")),
        "rule": str(decision.get("rule", "")),
        "message": str(error.get("message", "")),
        "help": str(error.get("developer_message", "")),
        "wrong": [(name or "input", why) for name, why in (error.get("parameter_errors") or {}).items()],
        "warnings": orjson.loads(row.warnings) if row.warnings else [],
        "has_result": row.state == State.SUCCEEDED,
        "result": row.result or "null",
        "took": row.duration_ms,
        "url": reverse("subject-call", args=[row.pk]),
    }


def try_context(person: User, tool: Tool, trial: Trial, panel: dict[str, Any] | None) -> dict[str, Any]:
    """What the part of the page needs that draws the form, the way in, and the answer."""
    toolkit = tool.version.toolkit
    mine = agents_of(person, toolkit)
    able = [each for each in mine if each.may_call]
    keys = [each.key for each in able]
    return {
        "trial": trial,
        "panel": panel,
        "tool": tool,
        "is_callable": tool.version.state in ("published", "deprecated"),
        "able": able,
        "chosen_agent": trial.agent if trial.agent in keys else keys[0] if keys else "",
        "entry": _entry(person, toolkit, [each for each in mine if not each.may_call]),
    }


def _entry(person: User, toolkit: Toolkit, shut_out: list[Mine]) -> dict[str, Any] | None:
    """How the agents that may not call yet could be let in: at once by who may give it, else by asking."""
    waiting = AccessRequest.objects.filter(
        toolkit=toolkit, state=AccessRequest.State.PENDING, agent__in=[each.agent for each in shut_out if each.agent]
    )
    asked = list(waiting.select_related("agent").order_by("id"))
    names = {request.agent_id for request in asked}
    return {
        "agents": [each for each in shut_out if each.agent is None or each.agent.pk not in names],
        "asked": asked,
        "may_give": not granting.obstacle(person, "call", toolkit, Agent(owner=person)),
    }


def _brought(tool: Tool) -> list[Field]:
    """What the caller has to bring besides the input: tokens and secrets, by their ids."""
    kinds = (("authorization", "a", "Token for {}"), ("secrets", "s", "Secret {}"))
    return [
        Field(name=f"{mark}-{place}", label=told.format(need["id"]), pointer="", kind="secret", is_required=True)
        for kind, mark, told in kinds
        for place, need in enumerate(tool.requirements.get(kind, ()))
    ]


def made_by(person: User, id: UUID) -> Call | None:
    """A call that this person made through an agent of theirs; None if it is not one."""
    return Call.objects.select_related("agent").filter(pk=id, agent__owner=person).first()
