"""The grpc runtime: Tool Contract v1 as one unary call, JSON both ways, statuses as failures (table B3)."""

import time

import orjson
from grpclib.const import Status

from execution import egress, envelope, grpc
from execution.errors import CallError, ErrorCode
from execution.grpc import Reply
from execution.runtimes import upstream
from execution.runtimes.base import Invocation, RunResult

# fmt: off
STATUSES: dict[Status, tuple[ErrorCode, bool]] = {
    Status.CANCELLED:           (ErrorCode.CANCELED, False),
    Status.UNKNOWN:             (ErrorCode.EXECUTION_FAILED, True),
    Status.INVALID_ARGUMENT:    (ErrorCode.INVALID_INPUT, False),
    Status.DEADLINE_EXCEEDED:   (ErrorCode.TIMEOUT, True),
    Status.NOT_FOUND:           (ErrorCode.EXECUTION_FAILED, False),
    Status.ALREADY_EXISTS:      (ErrorCode.EXECUTION_FAILED, False),
    Status.PERMISSION_DENIED:   (ErrorCode.AUTH_FORBIDDEN, False),
    Status.RESOURCE_EXHAUSTED:  (ErrorCode.EXECUTION_FAILED, True),
    Status.FAILED_PRECONDITION: (ErrorCode.EXECUTION_FAILED, False),
    Status.ABORTED:             (ErrorCode.EXECUTION_FAILED, True),
    Status.OUT_OF_RANGE:        (ErrorCode.INVALID_INPUT, False),
    Status.UNIMPLEMENTED:       (ErrorCode.UNSUPPORTED_TOOL, False),
    Status.INTERNAL:            (ErrorCode.EXECUTION_FAILED, True),
    Status.UNAVAILABLE:         (ErrorCode.EXECUTION_FAILED, True),
    Status.DATA_LOSS:           (ErrorCode.EXECUTION_FAILED, False),
    Status.UNAUTHENTICATED:     (ErrorCode.AUTH_INVALID, False),
}
# fmt: on


class GrpcRuntime:
    """Asks a gRPC service that knows the contract."""

    def run(self, invocation: Invocation) -> RunResult:
        own = {**upstream.own_headers(invocation), "X-Tool-Contract-Version": envelope.VERSION}
        try:
            reply = grpc.ask(
                invocation.tool.runtime.options["endpoint"],
                grpc.METHOD,
                orjson.dumps(envelope.request_envelope(invocation)),
                headers=egress.merged(own, invocation.credentials.headers),
                deadline=time.monotonic() + invocation.timeout,
                cancel=invocation.cancel,
                max_bytes=invocation.max_answer,
            )
        except egress.EgressError as error:
            raise upstream.failure(error, invocation) from error
        if reply.status is not Status.OK:
            raise _failure(reply, invocation)
        return envelope.read_response(reply.body, invocation, traffic=reply.traffic)


def _failure(reply: Reply, invocation: Invocation) -> CallError:
    code, can_retry = STATUSES[reply.status]
    said = upstream.excerpt(reply.message.encode(), invocation)
    asked = reply.metadata.get("grpc-retry-pushback-ms", "")
    return CallError(
        code,
        f"The tool answered {reply.status.name}: {said}" if said else f"The tool answered {reply.status.name}",
        can_retry=can_retry,
        retry_after_ms=int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 9 else None,
        details={"tool": invocation.tool.tool_id, "grpc_status": reply.status.name},
        traffic=reply.traffic,
    )
