"""The session API comes in by the doorway: its own JSON for everything, whatever stands in a path."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from tests.sessions.conftest import Ask
from tests.sessions.worker import BEAT, Worker

pytestmark = pytest.mark.django_db


def through_the_doorway(worker: Worker, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    from config.doorway import Doorway

    doors = Doorway()
    content = b"" if body is None else json.dumps(body).encode()
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "HTTP_HOST": "localhost",
        "HTTP_AUTHORIZATION": f"Bearer {worker.agent.key}",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(content)),
        "wsgi.input": io.BytesIO(content),
        "wsgi.url_scheme": "http",
    }
    told: list[int] = []
    assert path in doors
    parts = doors(environ, lambda status, headers: told.append(int(status.split()[0])))
    return told[0], b"".join(parts)


def test_every_path_of_the_api_is_a_door(worker: Worker, ask: Ask) -> None:
    call = ask(call_id="a/ü")
    assert through_the_doorway(worker, "GET", "/v1/sessions")[0] == 200
    assert through_the_doorway(worker, "GET", f"/v1/sessions/{worker.session}/requests")[0] == 200
    request = f"{worker.session}/{'a/ü'.encode().decode('latin-1')}"  # as a server hands a path over
    assert through_the_doorway(worker, "POST", f"/v1/tools/request/{request}/heartbeat", BEAT) == (200, b"")
    done = {"response": {"state": "COMPLETE"}}
    assert through_the_doorway(worker, "POST", f"/v1/tools/response/{request}", done) == (200, b"")
    call.refresh_from_db()
    assert call.state == "succeeded"
    assert through_the_doorway(worker, "DELETE", f"/v1/sessions/{worker.session}") == (204, b"")


@pytest.mark.parametrize("path", ["/v1/tools/", "/v1/tools/request/x", "/v1/sessionsx", "/v1/tools/else"])
def test_paths_that_lead_nowhere_are_404(worker: Worker, path: str) -> None:
    assert through_the_doorway(worker, "GET", path)[0] == 404
