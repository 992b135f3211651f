"""Why can this agent call this tool, or why not: asked by those who may examine policy, or answer for the agent."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from execution.portal.frame import for_people, page
from execution.portal.reasons import Answer, Step, reasons
from execution.portal.standing import Standing, standing
from policy import evaluation, readers
from policy.models import Agent
from policy.visibility import visible_toolkits
from registry import access, strictjson
from registry.models import Toolkit
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec

OFFERED = 300
MAX_INPUT = 100_000
MAX_FLAWS = 10


class Unanswerable(Exception):
    """A question that cannot be asked so; which field, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field, self.reason = field, reason


@for_people("GET", "HEAD", "POST")
def why(request: HttpRequest) -> HttpResponse:
    """An input is posted, so that it stays out of addresses and logs; agent and tool make an address to share."""
    me = standing(request)
    assert me is not None  # for_people saw to it
    if not me.may_ask_why:
        raise PermissionDenied("This is answered to those who own an agent, audit a toolkit or write policy.")
    given = request.POST if request.method == "POST" else request.GET
    asked = {name: given.get(name, "").strip().replace("\0", "")[:200] for name in ("agent", "tool")}
    text = request.POST.get("input", "").strip()
    if request.method == "POST" and not text:
        return redirect(f"{reverse('portal-why')}?{urlencode(asked)}")
    answer, error = None, None
    if all(asked.values()):
        try:
            answer = _answered(me, asked, text)
        except Unanswerable as flaw:
            error = flaw
    offered = Agent.objects.all() if readers.may_replay(me.user) else _mine(me)
    context: dict[str, Any] = {
        "asked": asked,
        "input": text,
        "answer": answer,
        "error": error,
        "agents": offered.values_list("name", flat=True)[:OFFERED],
        "tools": _offered(me),
        "may_ask": True,
    }
    return page(request, "portal/why.html", "Why can it call this?", status=422 if error else 200, **context)


def _answered(me: Standing, asked: Mapping[str, str], text: str) -> Answer:
    ref = ToolRef.parse(asked["tool"])
    toolkit = Toolkit.objects.filter(name__iexact=ref.toolkit).first() if ref is not None else None
    examines = readers.may_examine(me.user, toolkit)
    agent = (Agent.objects.all() if examines else _mine(me)).filter(name=asked["agent"]).first()
    if agent is None:
        raise Unanswerable("agent", "There is no agent of this name that you may ask about.")
    if ref is None:
        raise Unanswerable("tool", "A tool reads Toolkit.Tool, or Toolkit.Tool@1.2.3.")
    tool = resolve(ref)
    known = tool is not None and (examines or tool.toolkit_id in visible_toolkits(evaluation.caller_of(agent)))
    if tool is None or not known:
        return _not_there(me, ref, agent)
    return reasons(agent, tool, _input(tool, text), asks=me.user)


def _input(tool: ToolSpec, text: str) -> Mapping[str, Any] | None:
    """Fits the tool, as at every door: a question that cannot be asked has no answer."""
    if not text:
        return None
    try:
        value = strictjson.loads(text.encode("utf-8", "surrogatepass"), max_bytes=MAX_INPUT)
    except strictjson.StrictJSONError as error:
        raise Unanswerable("input", f"This is not JSON: {error.message}") from error
    if not isinstance(value, dict):
        raise Unanswerable("input", "The input is an object: {…}")
    if flaws := tool.input.violations(value)[:MAX_FLAWS]:
        told = "; ".join(f"{flaw.parameter}: {flaw.message}" if flaw.parameter else flaw.message for flaw in flaws)
        raise Unanswerable("input", f"The tool would refuse this input. {told}")
    return value


def _not_there(me: Standing, ref: ToolRef, agent: Agent) -> Answer:
    """No tool that can be called; why not is told to those who see its versions."""
    seen = access.visible_tools(me.user).filter(version__toolkit__name__iexact=ref.toolkit, name__iexact=ref.tool)
    states = sorted(set(seen.values_list("version__state", flat=True)))
    callable_ = {"published", "deprecated"}
    if not states:
        text = f"There is no tool {ref.name} that {agent.name} may know of."
        helps = "Is the name right? If so, the agent lacks “view” and “call” on its toolkit."
    elif callable_.isdisjoint(states):
        text = f"No version of {ref.name} can be called: all are {' or '.join(states)}."
        helps = "Publish a version of it."
    elif ref.version is not None:
        text = f"{ref} cannot be called, while another version of {ref.name} can."
        helps = f"Ask for {ref.name} without a version to get the newest."
    else:
        text = f"{agent.name} may not know that {ref.name} exists: it has neither “view” nor “call” on {ref.toolkit}."
        helps = f"Give it “call” on {ref.toolkit}."
    return Answer(verdict="no", text=f"No. {text}", steps=[Step(name="Tool", mark="no", text=text, help=helps)])


def _mine(me: Standing) -> Any:
    """The agents that one answers for, or hands out the keys of: whoever has a key can ask with it."""
    everyones = Agent.objects.order_by("name")
    return everyones if me.has("policy.change_agent") else everyones.filter(owner=me.user)


def _offered(me: Standing) -> list[str]:
    """Names to choose from while one types, of tools that this person sees."""
    seen: Any = access.visible_tools(me.user).filter(version__state__in=("published", "deprecated"))
    columns = ("version__toolkit__name", "name")
    pairs = seen.order_by(*columns).values_list(*columns).distinct()[:OFFERED]
    return [f"{toolkit}.{name}" for toolkit, name in pairs]
