"""The canary sweep: tools that spill their secrets in every encoding, and not one that can be found anywhere after it.

Control runs with the redactor switched off find them in nearly every place, or the sweep would prove nothing.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import logging
import os
import shutil
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.db import connection
from django.test import Client
from guardian.shortcuts import assign_perm
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rest_framework.test import APIClient

from audit.redaction import Redactor
from config.logs import LineFormatter
from execution import secretstore
from execution.models import Call
from execution.runtimes import RUNTIMES
from execution.telemetry import spans
from policy import agents, delivery
from policy.agents import NewAgent
from policy.models import Approval
from registry.manifests import import_folder
from registry.models import Toolkit
from registry.publishing import publish
from tests.execution import canaries
from tests.execution.canaries import ENCODINGS, canary, core
from tests.execution.secretkit import Loopback, keep, sender

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("at_once")]

TOOLKIT = '''
"""Tools that spill what they were trusted with."""

from typing import Any

from canaries import ENCODINGS
from placet import Text, Toolkit, ToolContext, ToolError, tool

toolkit = Toolkit(name="Spill", version="1.0.0")
NAMES = list(ENCODINGS)


@tool(timeout="10s", requires_secrets=NAMES)
def spill(how: str, context: ToolContext) -> Any:
    """Tells its secrets, each in its encoding."""
    texts = [encode(context.secrets[name]) for name, encode in ENCODINGS.items()]
    match how:
        case "value":
            return {"texts": texts}
        case "keys":
            return {text: number for number, text in enumerate(texts)}
        case "split":
            return [part for text in texts for part in (text[: len(text) // 2], text[len(text) // 2 :])]
        case "content":
            return [Text(text) for text in texts]
        case "error":
            raise ToolError(" ".join(texts), developer_message=" ".join(texts), additional_prompt_content=texts[0])
        case "crash":
            raise RuntimeError(" ".join(texts))
        case "log":
            for number, text in enumerate(texts):
                context.log.info(text)
                context.progress(number, len(texts), text)
                if "\\n" not in text:  # a secret cut in two by a line end becomes two records, and those are two texts
                    print(text)


@tool(timeout="10s", requires_secrets=NAMES, risk="critical")
def ask(quoted: list[str], context: ToolContext) -> None:
    """Is called with arguments that quote the secrets, and needs a person."""
'''
WAYS = ("value", "keys", "split", "content", "error", "crash", "log")
PROFILES = ("bearer", "api_key_header", "basic", "oauth2_client_credentials")

# Where each encoding must be seen when nothing is redacted; elsewhere a secret has no way to at all.
REACHABLE = (
    "rows",
    "native answers",
    "OXP answers",
    "OTC answers",
    "contract answers",
    "calls for people",
    "call pages",
    "events",
    "event exports",
    "evidence packs",
    "log",
    "approvals",
    "approval pages",
)


class Sinks:
    """Everything that was stored, told or shown, by where."""

    def __init__(self) -> None:
        self.found: dict[str, list[bytes]] = {}

    def add(self, sink: str, content: bytes | str) -> None:
        self.found.setdefault(sink, []).append(
            content.encode("utf-8", "replace") if isinstance(content, str) else content
        )

    def bytes(self, sink: str) -> bytes:
        return b"\n".join(self.found.get(sink, []))


class Sweep:
    """One run: the calls, and what they left behind."""

    def __init__(self, made: NewAgent, log: io.StringIO, home: Path) -> None:
        self.sinks = Sinks()
        self.agent = APIClient()
        self.agent.credentials(HTTP_AUTHORIZATION=f"Bearer {made.key}")
        self.log, self.home, self.spans = log, home, InMemorySpanExporter()
        self.spilled: list[tuple[str, str]] = []  # (encoding, canary)

    def call(self, door: str, tool: str, arguments: Any, context: Any = None) -> None:
        asked = {"tool_id": tool, "input": arguments} | ({"context": context} if context else {})
        match door:
            case "native":
                answer = self.agent.post("/api/calls/", asked, format="json", HTTP_PREFER="wait=10")
            case "OXP":
                answer = self.agent.post("/tools/call", {"$schema": "urn:oxp:1.0", "request": asked}, format="json")
            case "contract":
                body = {"request_id": str(uuid4()), "tool": {"name": tool}, "input": arguments}
                answer = self.agent.post("/contract/v1/execute", body, format="json", HTTP_PREFER="envelope")
            case _:
                answer = self.agent.post("/call", {"request": asked}, format="json")
        assert answer.status_code < 500, answer.content
        self.sinks.add(f"{door} answers", answer.content)

    def brought(self, way: str, door: str = "native", tool: str = "Spill.Spill") -> None:
        """A call whose caller brings a canary for each encoding."""
        given = {name: canary(f"{way} {door} {name}") for name in ENCODINGS}
        self.spilled += given.items()
        secrets = [{"id": name, "value": text} for name, text in given.items()]
        arguments: dict[str, Any] = {"how": way}
        if tool == "Spill.Ask":
            arguments = {"quoted": [ENCODINGS[name](text) for name, text in given.items()]}
        self.call(door, tool, arguments, {"secrets": secrets})

    def resolved(self, profile: str, door: str, text: str) -> None:
        """A call whose tool is sent a secret of ours and echoes it in each encoding."""
        self.spilled += [(name, text) for name in ENCODINGS]
        self.call(door, f"Echo{profile.partition('_')[0].capitalize()}.Send", {"text": "x"})

    def collect(self) -> None:
        """Read every place that a person, a program or a thief could read."""
        person = APIClient()
        root = User.objects.create_superuser("root", password=None)
        person.force_login(root)
        browser = Client()
        browser.force_login(root)
        for call in Call.objects.all():
            self.sinks.add("calls for people", person.get(f"/api/calls/{call.pk}/").content)
            for address in (f"/calls/{call.pk}/", f"/calls/{call.pk}/story/"):
                self.sinks.add("call pages", browser.get(address).content)
            self.sinks.add("native answers", self.agent.get(f"/api/calls/{call.pk}/").content)
            for client in (person, self.agent):
                self._pack(client, f"/api/calls/{call.pk}/evidence/")
        self.sinks.add("events", person.get("/api/audit/events/?page_size=200").content)
        for form in ("jsonl", "csv"):
            exported = person.get(f"/api/audit/events/export/?format={form}")
            self.sinks.add("event exports", b"".join(exported.streaming_content))  # type: ignore[attr-defined]
        for form in ("zip", "jsonl", "csv"):
            asked = person.post("/api/evidence/", {"filters": {}, "form": form}, format="json")
            self._pack(person, f"{asked['Location']}download/")
        for approval in Approval.objects.all():
            self.sinks.add("approvals", person.get(f"/api/approvals/{approval.pk}/").content)
            self.sinks.add("approval pages", browser.get(f"/approvals/{approval.pk}/").content)
        for address in ("/admin/execution/call/", "/admin/execution/attempt/", "/admin/audit/event/", "/api/secrets/"):
            self.sinks.add("lists", browser.get(address).content)
        delivery.deliver()
        for message in mail.outbox:
            self.sinks.add("mail", message.message().as_bytes())
        self.sinks.add("metrics", browser.get("/metrics").content)
        for span in self.spans.get_finished_spans():
            self.sinks.add("spans", span.to_json())
        self.sinks.add("log", self.log.getvalue())
        self._rows()
        self._files()
        self._processes()

    def _pack(self, client: APIClient, address: str) -> None:
        """What is in a pack of evidence, unpacked: compression hides what it holds."""
        content = bytes(client.get(address).getvalue())
        if not content.startswith(b"PK"):
            self.sinks.add("evidence packs", content)
            return
        with zipfile.ZipFile(io.BytesIO(content)) as pack:
            for name in pack.namelist():
                self.sinks.add("evidence packs", pack.read(name))

    def _rows(self) -> None:
        with connection.cursor() as cursor:
            for table in connection.introspection.table_names(cursor):
                cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
                for row in cursor.fetchall():
                    for cell in row:
                        self.sinks.add("rows", bytes(cell) if isinstance(cell, bytes | memoryview) else str(cell))

    def _files(self) -> None:
        for path in self.home.rglob("*"):
            if path.is_file() and "toolkits" not in path.parts:
                self.sinks.add("files", path.read_bytes())

    def _processes(self) -> None:
        """The tool hosts that are still warm, and whatever they started."""
        waiting = [os.getpid()]
        while waiting:
            for task in Path("/proc").glob(f"{waiting.pop()}/task/*"):
                for child in (task / "children").read_text().split():
                    waiting.append(int(child))
                    for name in ("cmdline", "environ"):
                        with contextlib.suppress(OSError):  # it has just ended
                            self.sinks.add("processes", Path(f"/proc/{child}/{name}").read_bytes())

    def cells(self) -> set[tuple[str, str]]:
        """Every (encoding, sink) in which one of that encoding's canaries can be read."""
        wanted = {name: [ENCODINGS[name](text) for of, text in self.spilled if of == name] for name in ENCODINGS}
        looks = {name: set().union(*map(shapes, texts)) for name, texts in wanted.items()}
        return {
            (name, sink)
            for sink in self.sinks.found
            for content in [self.sinks.bytes(sink)]
            for name, found in looks.items()
            if any(look in content for look in found)
        }

    def cores(self) -> set[str]:
        """Sinks in which the plain core of any canary can be read, whatever is around it."""
        texts = {part.encode() for _, text in self.spilled for part in (text[:16], text[-16:])}
        return {
            sink
            for sink in self.sinks.found
            for content in [self.sinks.bytes(sink)]
            if any(part in content for part in texts)
        }


def shapes(text: str) -> set[bytes]:
    """A text as JSON in JSON, a page or a log would hold it."""
    found = {text, text.replace("\n", "\\x0a")}
    for _ in range(2):
        for each in tuple(found):
            found |= {json.dumps(each)[1:-1], json.dumps(each, ensure_ascii=False)[1:-1], html.escape(each)}
            found.add(each.replace('"', '""'))
    return {each.encode() for each in found}


@pytest.fixture
def sweep(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweep]:
    """The toolkits, an agent that may call them, a backend that echoes, and a log that is kept."""
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    monkeypatch.setenv("PLACET_SECRET_UNUSED", canary("environment").replace("ü", "u"))
    secretstore._noted.clear()
    folder = tmp_path / "spill"
    folder.mkdir()
    (folder / "spill.py").write_text(TOOLKIT)
    shutil.copy(canaries.__file__, folder)
    author, reviewer = (User.objects.create_user(name) for name in ("author", "reviewer"))
    approver = User.objects.create_user("approver", email="approver@placet.example")
    (imported,) = import_folder(folder, by=author)
    publish(imported.version, by=author, reviewed_by=reviewer)
    assign_perm("registry.approve_toolkit", approver, Toolkit.objects.get(name="Spill"))
    log, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(log), root.level
    handler.setFormatter(LineFormatter())
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    with Loopback(_echo) as backend:
        _publish_echoes(backend)
        toolkits = ["Spill", *(f"Echo{profile.partition('_')[0].capitalize()}" for profile in PROFILES)]
        made = agents.create("tester", actor="shell", call=toolkits)
        sweep = Sweep(made, log, Path(settings.PLACET_HOME))
        spans.use(spans.provider_for(SimpleSpanProcessor(sweep.spans)))
        yield sweep
        spans.use(None)
    root.removeHandler(handler)
    root.setLevel(level)
    for runtime in RUNTIMES.values():
        if "_pool" in vars(runtime):
            vars(runtime)["_pool"].close()
            del vars(runtime)["_pool"]


def secret_of(profile: str) -> Any:
    """A canary as each profile takes it; a token endpoint gives out a canary of its own."""
    text = canary(f"resolved {profile}")
    return {
        "basic": f"ana:{text}",
        "oauth2_client_credentials": {"client_id": "placet", "client_secret": text},
    }.get(profile, text)


def _publish_echoes(backend: Loopback) -> None:
    for profile in PROFILES:
        keep(f"key-{profile}", secret_of(profile))
        auth = {"profile": profile, "secretRef": f"key-{profile}"}
        if profile == "api_key_header":
            auth["headerName"] = "X-Key"
        if profile == "oauth2_client_credentials":
            auth["tokenUrl"] = f"{backend.url}/token"
        runtime = {"type": "http", "endpoint": f"{backend.url}/echo", "timeout": "10s"}
        sender(auth, name=f"Echo{profile.partition('_')[0].capitalize()}", runtime=runtime)


def _echo(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
    """A token, or everything that came with the request in every encoding."""
    if request.path == "/token":
        return 200, {"access_token": canary("token").replace("ü", "u"), "expires_in": 3600}
    sent = request.headers.get("X-Key") or str(request.headers["Authorization"]).partition(" ")[2]
    texts = [sent, canary(f"resolved {_profile(sent)}")]
    return 200, json.dumps([encode(text) for text in texts for encode in ENCODINGS.values()]).encode()


def _profile(sent: str) -> str:
    known = {canary(f"resolved {profile}"): profile for profile in PROFILES}
    return known.get(sent, "basic" if not sent.startswith("cnry") else "oauth2_client_credentials")


def run(sweep: Sweep) -> None:
    for way in WAYS:
        sweep.brought(way)
    for door in ("OXP", "OTC"):
        sweep.brought("value", door)
        sweep.brought("error", door)
    sweep.brought("ask", tool="Spill.Ask")
    for profile in PROFILES:
        sweep.resolved(profile, "native", canary(f"resolved {profile}"))
        sweep.resolved(profile, "contract", canary(f"resolved {profile}"))
    sweep.spilled += [(name, canary("token").replace("ü", "u")) for name in ENCODINGS]
    sweep.spilled.append(("raw", canary("environment").replace("ü", "u")))  # no child inherits it
    sweep.collect()


def test_no_canary_is_found_anywhere(sweep: Sweep) -> None:
    run(sweep)
    assert sweep.cells() == set()
    assert sweep.cores() == set()
    assert set(REACHABLE) <= set(sweep.sinks.found)
    assert b"[REDACTED:" in sweep.sinks.bytes("rows")
    assert b"placet" in sweep.sinks.bytes("processes")
    echoes = Call.objects.filter(tool_ref__startswith="Echo")
    assert list(echoes.values_list("state", flat=True)) == ["succeeded"] * 2 * len(PROFILES)


def test_with_the_redactor_off_nearly_every_cell_shows_its_canary(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unchanged(self: Redactor, value: Any, schema: Any = None) -> Any:
        return value

    for name in ("for_people", "for_deciders", "for_caller", "text"):
        monkeypatch.setattr(Redactor, name, unchanged)
    run(sweep)
    wanted = {(name, sink) for name in ENCODINGS for sink in REACHABLE}
    missed = wanted - sweep.cells()
    assert len(missed) <= len(wanted) // 10, sorted(missed)
    rows = sweep.sinks.bytes("rows").decode("utf-8", "replace")
    assert all(core(f"resolved {profile}") in rows for profile in PROFILES)
    assert core("token") in rows


def test_every_canary_is_its_own() -> None:
    labels = [f"{way} {name}" for way in WAYS for name in ENCODINGS]
    assert len({core(label) for label in labels}) == len(labels)
    encoded: set[str] = {encode(canary("x")) for encode in ENCODINGS.values()}
    assert len(encoded) == len(ENCODINGS) == 14
