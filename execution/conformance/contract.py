"""Contract: requests and responses have the shape that both sides rely on."""

import time

from grpclib.const import Status

from execution.conformance.endpoints import Asking, Grpc, Webhook
from execution.conformance.probe import Probe
from execution.conformance.reply import Reply
from execution.conformance.verdict import Failed, NotApplicable, shown
from execution.grpc.codec import CONTENT_TYPE

GROUP = "Contract"
FIELDS = ("code", "reason", "retryable", "message", "details")


def answers(probe: Probe) -> str:
    """answers a valid request with ok"""
    reply = probe.opening()  # What the other checks go on with: another request might be answered otherwise.
    return f"answered {reply.kind} in {reply.seconds * 1000:.0f} ms"


def names_the_version(probe: Probe) -> str:
    """names version v1 in its response"""
    named = probe.response().get("tool_contract_version")
    if named != "v1":
        raise Failed(f"tool_contract_version is {shown(named)}")
    return "tool_contract_version is v1"


def echoes_the_request_id(probe: Probe) -> str:
    """echoes request_id"""
    told = probe.response().get("request_id")
    if told != probe.first_id:
        raise Failed(f"request_id is {shown(told)}, another one was sent")
    return "request_id came back"


def carries_output_and_no_error(probe: Probe) -> str:
    """ok carries an output and no error"""
    response = probe.response()
    if response.get("error") is not None:
        raise Failed("the response says ok and has an error")
    if not isinstance(response.get("output", {}), dict):
        raise Failed(f"output is {shown(response['output'])}, not an object")
    return "output is an object, and there is no error"


def takes_no_version_for_ours(probe: Probe) -> str:
    """takes a request without a version for v1"""
    probe.response()
    probe.answered(probe.request(tool_contract_version=None))
    return "answered ok"


def refuses_another_version(probe: Probe) -> str:
    """refuses another version"""
    return _refused(probe.refusal(tool_contract_version="v2"), "tool_contract_version")


def requires_a_request_id(probe: Probe) -> str:
    """requires request_id"""
    return _refused(probe.refusal(request_id=None), "request_id")


def requires_a_tool_name(probe: Probe) -> str:
    """requires tool.name"""
    return _refused(probe.refusal(tool={"operation": "invoke"}), "tool.name")


def tells_whole_errors(probe: Probe) -> str:
    """its errors have all five fields"""
    error = probe.refusal(tool_contract_version="v2").error
    if not error:
        raise NotApplicable("it told of no error")
    if missing := [name for name in FIELDS if name not in error]:
        raise Failed(f"the error has no {', '.join(missing)}")
    blank = [
        name for name in ("code", "reason", "message") if not isinstance(error[name], str) or not error[name].strip()
    ]
    if blank:
        raise Failed(f"the error's {', '.join(blank)} must be a text")
    if not isinstance(error["details"], dict):
        raise Failed(f"details is {shown(error['details'])}, not an object")
    return "code, reason, retryable, message and details are there"


def survives_nonsense(probe: Probe) -> str:
    """answers what is not JSON with a refusal"""
    probe.first()
    reply = probe.ask(b"{")
    if not reply.is_our_fault and not (reply.is_answer and reply.error.get("code") == "invalid_input"):
        raise Failed(f"half a JSON document was answered {reply.status}")
    return f"answered {reply.kind}"


def is_whole_if_it_looks_like_one(probe: Probe) -> str:
    """an answer that looks like a response is one"""
    if probe.endpoint.is_enveloped:
        raise NotApplicable("every answer is a response here")
    reply = probe.first()
    if reply.response is None:
        return "the answer is plain, and taken as it is"
    if reply.response.get("error") is not None:
        raise Failed("the response says ok and has an error")
    return "it is a response"


def speaks_json_over_grpc(probe: Probe) -> str:
    """speaks application/grpc+json"""
    if not isinstance(probe.endpoint, Grpc):
        raise NotApplicable("this is about gRPC")
    told = probe.first().headers.get("content-type", "")
    if told != CONTENT_TYPE:
        raise Failed(f"content-type is {shown(told)}")
    return f"content-type is {CONTENT_TYPE}"


def has_one_method(probe: Probe) -> str:
    """answers UNIMPLEMENTED for a method it does not have"""
    endpoint = probe.endpoint
    if not isinstance(endpoint, Grpc):
        raise NotApplicable("this is about gRPC")
    probe.first()
    asking = Asking(body=b"{}", request_id="conform-method", headers=probe.credentials, timeout=probe.timeout)
    reply = probe.heard(lambda: endpoint.ask(asking, "/orloj.tool.v1.ToolService/NoSuchMethod"))
    if reply.status != Status.UNIMPLEMENTED.name:
        raise Failed(f"answered {reply.status}")
    return "answered UNIMPLEMENTED"


def knows_its_own_requests(probe: Probe) -> str:
    """has no answer to a request that it never got"""
    endpoint = probe.endpoint
    if not isinstance(endpoint, Webhook):
        raise NotApplicable("this is about webhook-callback")
    probe.first()
    request_id = probe.request()["request_id"]
    asking = Asking(body=b"", request_id=request_id, headers=probe.credentials, timeout=probe.timeout)
    reply = probe.heard(lambda: endpoint.poll(asking, time.monotonic() + probe.timeout))
    if reply.response is not None and reply.response["status"] == "ok":
        raise Failed("a request_id that was never sent is answered ok")
    return f"answered {reply.kind}"


def _refused(reply: Reply, field: str) -> str:
    if reply.response is None or not (reply.is_answer or reply.is_our_fault):
        raise Failed(f"answered {reply.status} and not with a response that refuses it")
    if reply.kind != "error/invalid_input":
        raise Failed(f"answered {reply.kind}, not error/invalid_input")
    details = reply.error.get("details")
    told = details.get("field") if isinstance(details, dict) else None
    if isinstance(details, dict) and told != field:
        raise Failed(f"details.field is {shown(told)}, not {field}")
    return f"answered {reply.kind}"


CHECKS = (
    answers,
    names_the_version,
    echoes_the_request_id,
    carries_output_and_no_error,
    takes_no_version_for_ours,
    refuses_another_version,
    requires_a_request_id,
    requires_a_tool_name,
    tells_whole_errors,
    survives_nonsense,
    is_whole_if_it_looks_like_one,
    speaks_json_over_grpc,
    has_one_method,
    knows_its_own_requests,
)
