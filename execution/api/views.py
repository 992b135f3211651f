"""`/api/calls/`: make a call, follow it, cancel it, settle an unknown one."""

from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from audit.api.lists import refuse_unknown
from audit.api.views import AnyForm
from execution import access, breakglass, calls, dispatch, losses, packfiles
from execution.api import preferences
from execution.api.filters import CallFilter
from execution.api.serializers import BreakGlassSerializer, CallSerializer, NewCallSerializer, SettlementSerializer
from execution.errors import ErrorCode, Failure, Stage
from execution.messages import CallContext, CallOutcome, CallRequest
from execution.models import Call, State
from execution.pipeline.admit import admit
from execution.protocols.dialect import seconds
from execution.viewer import Viewer
from policy.breakglass import BreakGlassError
from policy.caller import Caller
from registry.actors import who
from registry.api.errors import Conflict, Refused
from registry.api.serializers import Failure as Failed
from registry.toolref import ToolRef

WAIT = OpenApiParameter("wait", OpenApiTypes.NUMBER, description="Hold up to so many seconds (60) until it moves.")
KEY = OpenApiParameter("Idempotency-Key", OpenApiTypes.STR, OpenApiParameter.HEADER)
PREFER = OpenApiParameter("Prefer", OpenApiTypes.STR, OpenApiParameter.HEADER, description="wait=SECONDS")


class CallViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Call]):
    """An agent's own calls; for people, those of their agents and of toolkits they may audit."""

    queryset = Call.objects.all()
    serializer_class = CallSerializer
    filterset_class = CallFilter
    search_fields = ["tool_ref", "call_id", "trace_id", "agent__name", "error"]
    ordering_fields = ["created_at", "finished_at", "duration_ms", "state", "tool_id"]
    ordering_columns = {"tool_id": ("tool_ref",)}
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Call]:
        if getattr(self, "swagger_fake_view", False):
            return Call.objects.none()
        found = access.visible_calls(self.request.user, self._caller)
        return found.select_related("agent", "approval").prefetch_related("attempts")

    @property
    def more_parameters(self) -> tuple[str, ...]:
        return ("wait",) if self.action == "retrieve" else ()

    @property
    def _caller(self) -> Caller | None:
        return self.request.auth if isinstance(self.request.auth, Caller) else None

    @extend_schema(
        request=NewCallSerializer, responses={200: CallSerializer, 202: CallSerializer}, parameters=[KEY, PREFER]
    )
    def create(self, request: Request) -> Response:
        """200 with the call if it ended within `Prefer: wait=N`, else 202 and where to follow it."""
        if self._caller is None:
            raise PermissionDenied("Calls are made by agents: send an agent's key as 'Authorization: Bearer …'")
        form = NewCallSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        outcome = admit(_to_request(request, self._caller, form.validated_data))
        failure = outcome.failure
        if failure is not None and outcome.state not in _OPEN and _never_ran(outcome, failure):
            raise _refusal(outcome, failure)
        call = self.get_queryset().get(pk=outcome.id)
        location = f"/api/calls/{call.pk}/"
        status = 202 if call.is_open else 200
        return Response(self.get_serializer(call).data, status=status, headers={"Location": location})

    @extend_schema(parameters=[WAIT])
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The call as it is, or with `?wait=N` once it has moved."""
        wait = preferences.wait_parameter(request)
        call = self.get_object()
        if wait and call.is_open:
            dispatch.until_moved(call, wait=wait)
            call = self.get_object()
        return Response(self.get_serializer(call).data)

    @extend_schema(request=None, responses={200: CallSerializer, 202: CallSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """200: it has ended and will not run. 202: it runs, and its tool was told to stop."""
        call = self.get_object()
        if not access.may_cancel(request.user, self._caller, call):
            raise PermissionDenied("Only the agent that made the call, or its owner, may cancel it")
        if not call.is_open:
            raise Conflict(f"The call has already ended: {call.state}")
        after = calls.cancel(call, actor=_actor(request, self._caller))
        return Response(self.get_serializer(self.get_object()).data, status=202 if after.is_open else 200)

    @extend_schema(request=BreakGlassSerializer, responses={200: CallSerializer, 202: CallSerializer})
    @action(detail=True, methods=["post"], url_path="break-glass")
    def break_glass(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A person lets a denied or undecided call run; recorded, alarmed, and reviewed by another one afterwards."""
        call = self.get_object()
        form = BreakGlassSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        asked = form.validated_data
        try:
            ran = breakglass.run(call.pk, by=who(request), reason=asked["reason"], arguments=asked.get("input"))
        except BreakGlassError as error:
            raise Refused(error.status, error.code, error.message) from error
        shown = self.get_serializer(Call.objects.select_related("agent", "approval").get(pk=ran.pk)).data
        return Response(shown, status=202, headers={"Location": f"/api/calls/{ran.pk}/"})

    @extend_schema(
        summary="Download the evidence pack of a call",
        parameters=[],
        responses={(200, "application/zip"): OpenApiTypes.BINARY, 404: Failed},
    )
    @action(detail=True, filter_backends=[], pagination_class=None, content_negotiation_class=AnyForm)
    def evidence(self, request: Request, *args: Any, **kwargs: Any) -> FileResponse:
        """Its events, proofs, policy, tool definition and a verifier, as a zip."""
        refuse_unknown(request)
        call = self.get_object()
        return packfiles.of_call(call.pk, Viewer(user=who(request), caller=self._caller))

    @extend_schema(request=SettlementSerializer, responses=CallSerializer)
    @action(detail=True, methods=["post"])
    def settle(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A person says what became of a call whose worker was lost."""
        call = self.get_object()
        if not access.may_settle(request.user, self._caller, call):
            raise PermissionDenied("Only a person who may publish the toolkit may settle its calls")
        form = SettlementSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        found = form.validated_data
        actor = _actor(request, self._caller)
        if not losses.settle(call, actor=actor, succeeded=found["outcome"] == "succeeded", reason=found["reason"]):
            raise Conflict(f"Only a call of unknown outcome can be settled; this one is {call.state}")
        return Response(self.get_serializer(self.get_object()).data)


_OPEN = {State.QUEUED, State.RUNNING, State.AWAITING_APPROVAL, State.WAITING_CALLBACK}


def _never_ran(outcome: CallOutcome, failure: Failure) -> bool:
    return failure.code.stage is not Stage.TOOL or outcome.state == State.REJECTED


def _to_request(request: Request, caller: Caller, asked: dict[str, Any]) -> CallRequest:
    context = asked.get("context", {})
    return CallRequest(
        caller=caller,
        door="native",
        tool_text=asked["tool_id"],
        tool_ref=ToolRef.parse(asked["tool_id"]),
        arguments=asked.get("input", {}),
        context=CallContext(
            authorization={item["id"]: item["token"] for item in context.get("authorization", ())},
            secrets={item["id"]: item["value"] for item in context.get("secrets", ())},
            user_id=context.get("user_id", ""),
        ),
        call_id=preferences.idempotency_key(request),
        trace_id=asked.get("trace_id", ""),
        wait=preferences.preferred_wait(request),
    )


def _refusal(outcome: CallOutcome, failure: Failure) -> Refused:
    details = {"call": str(outcome.id), "call_id": outcome.call_id, **failure.details}
    if failure.developer_message:
        details["developer_message"] = failure.developer_message
    if failure.missing_requirements:
        details["missing_requirements"] = failure.missing_requirements
    # At this door a call's id is not in the body: the header is what there is to change.
    is_key = failure.code is ErrorCode.CALL_ID_REUSED
    errors = [
        {"path": "Idempotency-Key" if is_key else f"input.{name}" if name else "input", "reason": why}
        for name, why in failure.parameter_errors.items()
    ]
    return Refused(
        failure.code.http,
        failure.code.wire,
        failure.message,
        details=details,
        errors=errors or None,
        headers={"Retry-After": seconds(failure.retry_after_ms)} if failure.retry_after_ms is not None else None,
    )


def _actor(request: Request, caller: Caller | None) -> str:
    return f"agent:{caller.name}" if caller is not None else f"user:{request.user.get_username()}"
