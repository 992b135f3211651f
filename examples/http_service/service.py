"""Two tools that are web services: one that knows nothing of Placet, and one that speaks Tool Contract v1.

python examples/http_service/service.py --port 8321
"""

import argparse
import contextlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_BODY = 1_000_000
Answer = tuple[int, Any]  # the status, and what becomes the JSON body


def count(asked: Any) -> Answer:
    """POST /words: the input is the body, the value is the answer."""
    text = asked.get("text") if isinstance(asked, dict) else None
    if not isinstance(text, str):
        return 400, {"message": "text is missing"}
    return 200, {"words": len(text.split()), "characters": len(text)}


class Stock:
    """POST /stock: Tool Contract v1. A request that comes again gets the answer it already had."""

    def __init__(self) -> None:
        self._left = {"apple": 1200, "pear": 300}
        self._answers: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    def execute(self, asked: Any) -> Answer:
        if refusal := _refusal(asked):
            return 200, refusal
        with self._lock:
            request_id = str(asked["request_id"]).strip()
            if request_id not in self._answers:
                self._answers[request_id] = self._reserve(asked)
            return 200, self._answers[request_id]

    def _reserve(self, asked: Any) -> dict[str, Any]:
        given = asked.get("input")
        given = given if isinstance(given, dict) else {}
        item, wanted = given.get("item"), given.get("count")
        if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1:
            return _invalid(asked, "input.count", "count must be a number from 1 on")
        left = self._left.get(item) if isinstance(item, str) else None
        if left is None:
            known = {"items": sorted(self._left)}
            return _error(asked, "execution_failed", "tool_backend_failure", f"There is no {item} here", known)
        if left < wanted:
            return _error(
                asked, "execution_failed", "tool_backend_failure", f"Only {left} of {item} are left", {"left": left}
            )
        self._left[item] = left - wanted
        return {**_answer(asked, "ok"), "output": {"reservation": f"R-{len(self._answers) + 1}", "left": left - wanted}}


def _refusal(asked: Any) -> dict[str, Any] | None:
    """What the contract refuses before anything is done, in its order: version, request_id, tool.name."""
    if not isinstance(asked, dict):
        return _invalid({}, "", "This is not a JSON object")
    if str(asked.get("tool_contract_version") or "v1").strip().lower() != "v1":
        return _invalid(asked, "tool_contract_version", "This service speaks v1", expected="v1")
    if not str(asked.get("request_id") or "").strip():
        return _invalid(asked, "request_id", "request_id is missing")
    tool = asked.get("tool")
    if not isinstance(tool, dict) or not str(tool.get("name") or "").strip():
        return _invalid(asked, "tool.name", "tool.name is missing")
    return None


def _answer(asked: Any, status: str) -> dict[str, Any]:
    return {
        "tool_contract_version": "v1",
        "request_id": asked.get("request_id") or "",
        "status": status,
        "usage": {"attempt": asked.get("attempt") or 1, "duration_ms": 1},
        "trace": asked.get("trace") or {},
    }


def _error(asked: Any, code: str, reason: str, message: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
    told = {"code": code, "reason": reason, "retryable": False, "message": message, "details": details or {}}
    return {**_answer(asked, "error"), "error": told}


def _invalid(asked: Any, field: str, message: str, **more: Any) -> dict[str, Any]:
    return _error(asked, "invalid_input", "tool_invalid_input", message, {"field": field, **more})


def handler(doors: dict[str, Callable[[Any], Answer]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):  # whoever asked may have gone
                super().handle()

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if self.path not in doors:
                self._say(404, {"message": f"Nothing at {self.path}"})
            elif length > MAX_BODY:
                self._say(413, {"message": "Too much"})
            else:
                self._say(*self._answer(self.rfile.read(length)))

        def _answer(self, body: bytes) -> Answer:
            try:
                return doors[self.path](json.loads(body))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                return 400, {"message": f"This is no request: {type(error).__name__}"}

        def _say(self, status: int, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8321)
    port = parser.parse_args().port
    ThreadingHTTPServer(("127.0.0.1", port), handler({"/words": count, "/stock": Stock().execute})).serve_forever()


if __name__ == "__main__":
    main()
