"""A tool that is a gRPC service: one method, Tool Contract v1 as JSON in both directions.

.venv/bin/python examples/grpc_service/service.py --port 50061
"""

import argparse
import asyncio
import json
import time
from collections import OrderedDict
from typing import Any

from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import CodecBase
from grpclib.server import Server, Stream

METHOD = "/orloj.tool.v1.ToolService/Execute"
METRES = {"m": 1.0, "km": 1000.0, "cm": 0.01, "mile": 1609.344, "yard": 0.9144, "foot": 0.3048, "inch": 0.0254}
KEPT = 10_000  # answers for requests that come again


class JSONCodec(CodecBase):
    """Makes the content-type application/grpc+json; the service reads the bytes itself."""

    __content_subtype__ = "json"

    def encode(self, message: bytes, message_type: Any) -> bytes:
        return message

    def decode(self, data: bytes, message_type: Any) -> bytes:
        return data


class Lengths:
    """Converts lengths. A request that comes again gets the answer it already had."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def __mapping__(self) -> dict[str, Handler]:
        return {METHOD: Handler(self.execute, Cardinality.UNARY_UNARY, bytes, bytes)}

    async def execute(self, stream: Stream[bytes, bytes]) -> None:
        began = time.monotonic()
        try:
            asked = json.loads(await stream.recv_message() or b"")
        except ValueError:
            asked = None
        answer = self._answer(asked) if isinstance(asked, dict) else _error({}, "This is not a JSON object", "")
        answer["usage"] = {**answer["usage"], "duration_ms": round((time.monotonic() - began) * 1000, 3)}
        await stream.send_message(json.dumps(answer).encode())

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if str(asked.get("tool_contract_version") or "v1").strip().lower() != "v1":
            return _error(asked, "This service speaks v1", "tool_contract_version", expected="v1")
        request_id = str(asked.get("request_id") or "").strip()
        if not request_id:
            return _error(asked, "request_id is missing", "request_id")
        tool = asked.get("tool")
        if not isinstance(tool, dict) or not str(tool.get("name") or "").strip():
            return _error(asked, "tool.name is missing", "tool.name")
        if request_id not in self._answers:
            self._answers[request_id] = _converted(asked)
            if len(self._answers) > KEPT:
                self._answers.popitem(last=False)
        return {**self._answers[request_id], **_known(asked)}


def _converted(asked: dict[str, Any]) -> dict[str, Any]:
    given = asked.get("input")
    given = given if isinstance(given, dict) else {}
    length, source, target = given.get("length"), given.get("from"), given.get("to")
    if isinstance(length, bool) or not isinstance(length, int | float):
        return _error(asked, "length must be a number", "input.length")
    for name, unit in (("from", source), ("to", target)):
        if not isinstance(unit, str) or unit not in METRES:
            return _error(asked, f"{name} must be one of the units", f"input.{name}", units=sorted(METRES))
    value = length * METRES[str(source)] / METRES[str(target)]
    return {**_known(asked), "status": "ok", "output": {"length": value, "unit": target}}


def _known(asked: dict[str, Any]) -> dict[str, Any]:
    """What every response repeats of its request."""
    return {
        "tool_contract_version": "v1",
        "request_id": asked.get("request_id") or "",
        "usage": {"attempt": asked.get("attempt") or 1},
        "trace": asked.get("trace") or {},
    }


def _error(asked: dict[str, Any], message: str, field: str, **more: Any) -> dict[str, Any]:
    told = {"code": "invalid_input", "reason": "tool_invalid_input", "retryable": False, "message": message}
    return {**_known(asked), "status": "error", "error": {**told, "details": {"field": field, **more}}}


async def serve(port: int) -> None:
    server = Server([Lengths()], codec=JSONCodec())
    await server.start("127.0.0.1", port)
    await server.wait_closed()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=50061)
    asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
