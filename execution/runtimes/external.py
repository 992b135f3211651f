"""The external runtime: a service that speaks Tool Contract v1 gets the whole envelope and answers with one."""

import orjson

from execution import envelope
from execution.runtimes import upstream
from execution.runtimes.base import Invocation, RunResult
from execution.runtimes.loops import refuse_loop


class ExternalRuntime:
    """Asks a service that knows the contract."""

    def run(self, invocation: Invocation) -> RunResult:
        refuse_loop(invocation)
        response = upstream.exchange(
            invocation,
            "POST",
            invocation.tool.runtime.options["endpoint"],
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json",
                "X-Tool-Contract-Version": envelope.VERSION,
            },
            body=orjson.dumps(envelope.request_envelope(invocation)),
        )
        upstream.check_status(response, invocation)
        return envelope.read_response(response.body, invocation, traffic=response.traffic)
