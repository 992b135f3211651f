"""The first call, as it is printed."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from config.greeting import greeting


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        kind = self.headers["Content-Type"]
        self.wfile.write(json.dumps([self.path, self.headers["OXP-API-Key"], kind, asked]).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("tool", [pytest.param("curl", marks=pytest.mark.needs("curl")), "python3"])
def test_the_printed_call_works_also_where_there_is_no_curl_and_in_an_odd_folder(
    url: str, is_first: bool, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / 'it\'s a "home"'
    home.mkdir()
    demo = {"admin": {"username": "admin", "password": "p"}, "agents": [{"name": "demo", "key": "plc_1_secret"}]}
    (home / "demo.json").write_text(json.dumps(demo))
    monkeypatch.setattr(shutil, "which", lambda name: name if name == tool else None)
    text = greeting(home, url, {"demo": demo, "is_first": is_first})
    assert ("plc_1_secret" in text) == is_first
    command = text.partition("A first call:\n\n")[2].partition("\n\n")[0]
    assert command.split()[0] == tool
    answer = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
    body = {"request": {"tool_id": "Calculator.Add", "input": {"a": 2, "b": 3}}}
    assert json.loads(answer) == ["/tools/call", "plc_1_secret", "application/json", body]


def test_without_demo_data_nothing_is_shown_that_does_not_exist(tmp_path: Path) -> None:
    text = greeting(tmp_path, "http://127.0.0.1:8000", {"demo": None, "is_first": False})
    assert "No demo data" in text
    assert "demo.json" not in text
