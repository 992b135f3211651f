"""/api/policy/evaluate/: what would be decided, and why, without a call."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from policy import readers
from policy.api.trial_serializers import AnswerSerializer, EvaluateBody
from policy.caller import Caller
from policy.decision import Decision
from policy.evaluation import explained
from policy.models import Agent, Revision
from policy.visibility import visible_toolkits
from registry.api.errors import Refused
from registry.api.serializers import Failure
from registry.models import Toolkit
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec

MAX_ERRORS = 50


class EvaluateView(APIView):
    """A question to the policy. An agent's key asks about itself; people who write policy or audit, about any agent."""

    @extend_schema(
        summary="Explain what would be decided",
        request=EvaluateBody,
        responses={200: AnswerSerializer, 403: Failure, 404: Failure, 422: Failure},
    )
    def post(self, request: Request) -> Response:
        body = EvaluateBody(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        if isinstance(request.auth, Caller):
            agent, tool = _for_itself(request.auth, asked)
        else:
            agent, tool = _for_a_person(request, asked)
        arguments = asked.get("input", {})
        check_input(tool, arguments)
        user_id = asked.get("context", {}).get("user_id", "")
        decision = explained(agent, tool, arguments, user_id=user_id, revision=_revision(asked))
        return Response(AnswerSerializer(told(decision)).data)


def told(decision: Decision) -> dict[str, Any]:
    """The decision as it is stored with a call, and what would help."""
    return decision.as_json() | {"help": decision.help}


def find_tool(tool_id: str) -> ToolSpec:
    ref = ToolRef.parse(tool_id)
    tool = resolve(ref) if ref is not None else None
    if tool is None:
        raise _unknown_tool(tool_id)
    return tool


def check_input(tool: ToolSpec, arguments: Any) -> None:
    """Raises 422 with the name of each parameter that does not fit."""
    if violations := tool.input.violations(arguments)[:MAX_ERRORS]:
        errors = [{"path": f"input.{flaw.parameter}", "reason": flaw.message} for flaw in violations]
        raise Refused(422, "invalid_input", f"{errors[0]['path']}: {errors[0]['reason']}", errors=errors)


def _for_itself(caller: Caller, asked: dict[str, Any]) -> tuple[Agent, ToolSpec]:
    """Says the same about every other agent, known or not, and about every tool that is not the agent's to see."""
    if asked.get("agent", caller.name) != caller.name:
        raise PermissionDenied("An agent's key asks about that agent only.")
    if asked.get("revision") is not None:
        raise PermissionDenied("An agent's key asks the live policy only; leave revision out.")
    tool = find_tool(asked["tool_id"])
    if tool.toolkit_id not in visible_toolkits(caller):
        raise _unknown_tool(asked["tool_id"])
    return Agent.objects.get(pk=caller.agent_id), tool


def _for_a_person(request: Request, asked: dict[str, Any]) -> tuple[Agent, ToolSpec]:
    ref = ToolRef.parse(asked["tool_id"])
    toolkit = Toolkit.objects.filter(name__iexact=ref.toolkit).first() if ref is not None else None
    if not readers.may_examine(request.user, toolkit):
        raise PermissionDenied(
            "Asking about any agent needs the permission policy.edit_policy, or to audit the toolkit."
        )
    if "agent" not in asked:
        raise Refused(422, "invalid", "agent: Name the agent.", errors=[{"path": "agent", "reason": "Name the agent."}])
    agent = Agent.objects.filter(name=asked["agent"]).first()
    if agent is None:
        raise Refused(404, "not_found", f"There is no agent {asked['agent']!r}.")
    return agent, find_tool(asked["tool_id"])


def _revision(asked: dict[str, Any]) -> int | None:
    number: int | None = asked.get("revision")
    if number and not Revision.objects.filter(number=number).exists():
        raise Refused(404, "not_found", f"There is no policy revision {number}.")
    return number


def _unknown_tool(tool_id: str) -> Refused:
    return Refused(404, "not_found", f"There is no tool {tool_id!r} that can be called.")
