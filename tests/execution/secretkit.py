"""Tools that are sent secrets, a runtime that shows what it got, and secrets to send."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from execution.secretvalues import from_json

if TYPE_CHECKING:
    from execution.models import Call, Secret
    from execution.runtimes.base import Invocation, RunResult
    from registry.toolspec import ToolSpec

BEARER = {"profile": "bearer", "secretRef": "search-key"}
VALUE = "canary-7d1f0c93ab"


def publish_sender(auth: dict[str, Any], name: str = "Sender", **tool: Any) -> None:
    """A published toolkit with one tool, Send, that Placet brings credentials to."""
    from registry.manifests import import_manifest
    from registry.publishing import publish

    manifest = {
        "apiVersion": "placet.dev/v1",
        "kind": "Toolkit",
        "metadata": {"name": name, "version": "1.0.0"},
        "spec": {
            "tools": [
                {
                    "name": "Send",
                    "description": "Sends a text somewhere.",
                    "idempotency": "read",
                    "input": {"type": "object", "properties": {"text": {"type": "string"}}},
                    "runtime": {"type": "http", "endpoint": "https://tool.example/send", "timeout": "5s"},
                    "auth": auth,
                    **tool,
                }
            ]
        },
    }
    publish(import_manifest(manifest, by=None).version, by=None)


def sender(auth: dict[str, Any], name: str = "Sender", **tool: Any) -> ToolSpec:
    from registry.resolution import resolve
    from registry.toolref import ToolRef

    publish_sender(auth, name, **tool)
    ref = ToolRef.parse(f"{name}.Send")
    assert ref is not None
    found = resolve(ref)
    assert found is not None
    return found


def run_sender(call: Callable[..., Any], auth: dict[str, Any], **tool: Any) -> Call:
    """Publishes the tool, lets the agent `tester` call it, and runs one call as a worker does."""
    from guardian.shortcuts import assign_perm

    from execution.models import Call
    from execution.pipeline.perform import perform
    from policy.models import Agent
    from registry.models import Toolkit

    publish_sender(auth, **tool)
    assign_perm("registry.call_toolkit", Agent.objects.get(name="tester").user, Toolkit.objects.get(name="Sender"))
    outcome = call("Sender.Send", text="hello")
    perform(outcome.id)
    return Call.objects.get(pk=outcome.id)


def keep(name: str = "search-key", value: Any = VALUE, **more: Any) -> Secret:
    """A secret that is stored here."""
    from execution import secretstore

    return secretstore.create(name, from_json(value), actor="shell", **more)


class FakeRuntime:
    """Runs what it is given in place of a backend, and keeps every invocation."""

    def __init__(self, *answers: Callable[[Invocation], RunResult]) -> None:
        self.answers = list(answers)
        self.seen: list[Invocation] = []

    def run(self, invocation: Invocation) -> RunResult:
        self.seen.append(invocation)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(invocation)


class Loopback:
    """A small HTTP server on this machine that answers with a function and keeps what it was asked."""

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler, bytes], tuple[int, Any]]) -> None:
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked.append((self.path, {key.lower(): text for key, text in self.headers.items()}, body))
                status, told = answer(self, body)
                content = told if isinstance(told, bytes) else json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = _serve

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
