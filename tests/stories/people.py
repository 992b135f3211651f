"""People at the portal: they log in as a browser does, and answer over REST with their session and its CSRF token."""

from __future__ import annotations

import http.client
import json
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

from tests.stories.laboratory import Laboratory, Reply

PASSWORD = "correct horse battery staple"
HIRE = """
import django; django.setup()
from django.contrib.auth.models import User
from guardian.shortcuts import assign_perm
from registry.models import Toolkit
for name in sys.argv[2:]:
    person = User.objects.create_user(name, password=sys.argv[1])
    assign_perm("registry.approve_toolkit", person, Toolkit.objects.get(name="Lab"))
"""


def hire(laboratory: Laboratory, *names: str) -> list[Person]:
    """People with a login who may approve what the lab's tools do."""
    laboratory.script(HIRE, PASSWORD, *names)
    return [Person(laboratory, name).log_in() for name in names]


class Person:
    """One browser in one pair of hands."""

    def __init__(self, laboratory: Laboratory, name: str) -> None:
        self._laboratory = laboratory
        self.name = name
        self._cookies: dict[str, str] = {}

    def log_in(self) -> Person:
        assert self._send("GET", "/login/", None, {}).status == 200
        form = {
            "username": self.name,
            "password": PASSWORD,
            "csrfmiddlewaretoken": self._cookies["csrftoken"],
        }
        reply = self._send(
            "POST", "/login/", urlencode(form).encode(), {"Content-Type": "application/x-www-form-urlencoded"}
        )
        assert (reply.status, "sessionid" in self._cookies) == (302, True), reply
        return self

    def approve(self, approval: str) -> Reply:
        return self._post(f"/api/approvals/{approval}/approve/", {"reason": f"{self.name} agrees"})

    def deny(self, approval: str) -> Reply:
        return self._post(f"/api/approvals/{approval}/deny/", {"reason": f"{self.name} does not agree"})

    def look(self, approval: str) -> Any:
        reply = self._send("GET", f"/api/approvals/{approval}/", None, {"Accept": "application/json"})
        assert reply.status == 200, reply
        return reply.body

    def _post(self, path: str, body: Any) -> Reply:
        headers = {"Content-Type": "application/json", "X-CSRFToken": self._cookies["csrftoken"]}
        return self._send("POST", path, json.dumps(body).encode(), headers)

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self._laboratory.product.port, timeout=60)
        try:
            cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
            connection.request(method, path, body, headers | ({"Cookie": cookies} if cookies else {}))
            response = connection.getresponse()
            told = response.read()
            for line in response.headers.get_all("Set-Cookie") or []:
                self._cookies |= {name: morsel.value for name, morsel in SimpleCookie(line).items()}
            is_json = "json" in response.headers.get("Content-Type", "")
            return Reply(response.status, json.loads(told) if is_json else None, dict(response.getheaders()))
        finally:
            connection.close()
