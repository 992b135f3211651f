"""A tool that takes its time: it takes a call at once, works on it, and sends the answer to where it was told to.

    python examples/webhook_service/service.py --port 8341

Whoever does not want to wait for the push may ask for `GET /reports/{request_id}`. Nothing but Python is needed.
"""

import argparse
import contextlib
import hashlib
import hmac
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/reports"
MAX_BODY = 1_000_000
TRIES = 5

_jobs: dict[str, dict[str, Any] | None] = {}  # by request id; None while it is worked on
_lock = threading.Lock()


class Service(BaseHTTPRequestHandler):
    """POST takes a call, GET tells how far it is."""

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # whoever asked may have gone
            super().handle()

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if self.path != PATH or not length.isdigit() or int(length) > MAX_BODY:
            self.answer(404)
            return
        asked = read(self.rfile.read(int(length)))
        if refusal := refused(asked):
            self.answer(200, refusal)  # there is nothing to wait for
            return
        request_id = asked["request_id"]
        with _lock:  # the same request again is the same job: it is started once
            is_new = request_id not in _jobs
            if is_new:
                _jobs[request_id] = None
        way_back = self.headers.get("X-Placet-Callback-Url", ""), self.headers.get("X-Placet-Callback-Token", "")
        if is_new or _jobs[request_id] is not None:  # a job that is done is only told again
            threading.Thread(target=work, args=(asked, *way_back, self.server), daemon=True).start()
        self.answer(202)

    def do_GET(self) -> None:
        request_id = urllib.parse.unquote(self.path.removeprefix(f"{PATH}/"))
        with _lock:
            is_known, response = request_id in _jobs, _jobs.get(request_id)
        if response is not None:
            self.answer(200, response)
        else:
            self.answer(202 if is_known else 404)

    def answer(self, status: int, body: Any = None) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


def read(body: bytes) -> dict[str, Any]:
    """The request; an empty one if it is none."""
    try:
        asked = json.loads(body)
    except ValueError:
        return {}
    return asked if isinstance(asked, dict) else {}


def refused(asked: dict[str, Any]) -> dict[str, Any] | None:
    """What the contract refuses at once, in its order: version, request_id, tool.name; then an input without text."""
    tool, given = asked.get("tool"), asked.get("input")
    if str(asked.get("tool_contract_version") or "v1").strip().lower() != "v1":
        details = {"field": "tool_contract_version", "expected": "v1"}
    elif not isinstance(asked.get("request_id"), str) or not asked["request_id"].strip():
        details = {"field": "request_id"}
    elif not isinstance(tool, dict) or not str(tool.get("name") or "").strip():
        details = {"field": "tool.name"}
    elif not isinstance(given, dict) or not isinstance(given.get("text"), str):
        details = {"field": "input.text"}
    else:
        return None
    message = f"{details['field']} is missing or not what this service takes"
    told = {"code": "invalid_input", "reason": "tool_invalid_input", "retryable": False, "message": message}
    return {**envelope(asked, "error"), "error": {**told, "details": details}}


def envelope(asked: dict[str, Any], status: str, seconds: float = 0.0) -> dict[str, Any]:
    """What every response says, and repeats of its request."""
    return {
        "tool_contract_version": "v1",
        "request_id": asked.get("request_id") or "",
        "status": status,
        "usage": {"attempt": asked.get("attempt") or 1, "duration_ms": round(seconds * 1000)},
        "trace": asked.get("trace") or {},
    }


def work(asked: dict[str, Any], url: str, token: str, server: Any) -> None:
    """The job itself, and the push of its answer."""
    request_id = asked["request_id"]
    with _lock:
        response = _jobs[request_id]
    if response is None:
        time.sleep(server.takes)
        text = asked["input"]["text"]
        report = {"words": len(text.split()), "longest": max(text.split(), key=len, default="")}
        response = {**envelope(asked, "ok", server.takes), "output": report}
        with _lock:
            _jobs[request_id] = response
    if url and server.pushes:
        push(response, url, token)


def push(response: dict[str, Any], url: str, token: str) -> None:
    """Signed with the token of this attempt; tried again while nobody answers: the same answer twice does no harm."""
    body = json.dumps(response).encode()
    for pause in range(TRIES):
        moment = str(int(time.time()))
        signature = hmac.new(token.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {"Content-Type": "application/json", "X-Timestamp": moment, "X-Signature": f"sha256={signature}"}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10):
                return
        except urllib.error.HTTPError as error:
            with error:
                if error.code < 500:
                    return  # taken before, too late, or not wanted: no use to repeat it
        except OSError:
            pass
        time.sleep(pause)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Takes calls and answers later.")
    parser.add_argument("--port", type=int, default=8341)
    parser.add_argument("--takes", type=float, default=3.0, help="seconds that a report takes")
    parser.add_argument("--no-push", action="store_true", help="wait until the answer is asked for")
    given = parser.parse_args()
    service = ThreadingHTTPServer(("127.0.0.1", given.port), Service)
    service.daemon_threads = True
    service.takes, service.pushes = given.takes, not given.no_push  # type: ignore[attr-defined]
    service.serve_forever()
