"""POST …/heartbeat and POST …/response: a worker says that it lives, that it failed, or what came of its work."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest

from execution.pipeline import pulling
from execution.protocols import base
from execution.protocols.dialect import Answer, Refusal
from execution.protocols.sessions import translate
from policy.caller import Caller

DONE = Answer(body=b"")


class HeartbeatView(base.AgentView):
    """POST /v1/tools/request/{session}/{request}/heartbeat."""

    dialect = translate.DIALECT

    def post(self, request: HttpRequest, caller: Caller, session: str, request_id: str) -> Answer:
        body = self.read_json(request)
        if translate.is_alive(body):
            return _told(lambda: pulling.beat(caller, session, request_id))
        failure = translate.failure(body)
        return _told(lambda: pulling.finish(caller, session, request_id, lambda tool: failure))


class ResponseView(base.AgentView):
    """POST /v1/tools/response/{session}/{request}."""

    dialect = translate.DIALECT

    def post(self, request: HttpRequest, caller: Caller, session: str, request_id: str) -> Answer:
        fields: dict[str, Any] = translate.response(self.read_json(request))
        return _told(lambda: pulling.finish(caller, session, request_id, lambda tool: translate.result(fields, tool)))


def _told(act: Callable[[], None]) -> Answer:
    """These come several times a second: what is refused leaves no event, except an answer that came too late."""
    try:
        act()
    except pulling.Unknown as error:
        return translate.refused(Refusal("unknown_request", str(error), status=404))
    except pulling.Gone as error:
        return translate.refused(Refusal("conflict", str(error), status=409))
    return DONE
