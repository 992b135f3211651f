"""Packs over REST: asked for, made by a worker, downloaded by those who may see what is in them, gone after a day."""

import json
import os
import zipfile
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone
from guardian.shortcuts import assign_perm, remove_perm

from audit import trail, verifier
from audit.models import Event
from audit.sealing import seal_new_events
from execution import calls, packs
from execution.models import Call, Pack
from execution.scope import Scope
from policy import agents
from policy.models import Agent
from registry.models import ToolkitVersion
from tests.execution.conftest import Call as MakeCall
from tests.execution.test_timeline import client_of, row, succeeded

pytestmark = pytest.mark.django_db

PACKS = "/api/evidence/"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> Path:
    settings.PLACET_HOME = tmp_path
    return tmp_path


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be sent to a worker."""
    waiting: list[Any] = []
    monkeypatch.setattr("execution.packs.send", waiting.append)
    return waiting


@pytest.fixture
def done(call: MakeCall, unsent: list[Any]) -> Call:
    made = succeeded(call, value=7)
    trail.record("policy", "1", "policy.activated", actor="shell")
    assert seal_new_events() is not None
    return made


@pytest.fixture
def root() -> Client:
    return client_of(User.objects.create_superuser("root"))


def ask(client: Client, body: Any, **headers: str) -> Any:
    return client.post(PACKS, json.dumps(body), content_type="application/json", headers=headers)


def made(client: Client, body: Any, **headers: str) -> Any:
    """Asked for, and written by a worker."""
    answer = ask(client, body, **headers)
    assert answer.status_code == 202, answer.content
    packs.work_off(answer.json()["id"])
    return client.get(answer["Location"], headers=headers).json()


def content(client: Client, address: str, **headers: str) -> bytes:
    answer = client.get(address, headers=headers)
    assert answer.status_code == 200, answer.getvalue()
    return bytes(answer.getvalue())


def subjects(pack: bytes) -> set[tuple[str, str]]:
    lines = zipfile.ZipFile(BytesIO(pack)).read("events.jsonl").splitlines()
    return {(event["subject_kind"], event["subject_id"]) for event in map(json.loads, lines)}


def person(name: str) -> tuple[User, Client]:
    user = User.objects.create_user(name)
    return user, client_of(user)


def test_a_pack_is_asked_for_followed_and_downloaded(root: Client, done: Call, home: Path) -> None:
    answer = ask(root, {"filters": {"subject_kind": "call"}})
    assert answer.status_code == 202
    told = answer.json()
    assert answer["Location"] == f"/api/evidence/{told['id']}/"
    assert (told["state"], told["url"]) == ("waiting", "")
    assert root.get(f"{answer['Location']}download/").status_code == 409
    packs.work_off(told["id"])
    told = root.get(answer["Location"]).json()
    assert (told["state"], told["done"], told["total"], told["percent"]) == ("done", 5, 5, 100)
    file = root.get(told["url"])
    assert file["Content-Type"] == "application/zip"
    assert file["Content-Disposition"] == f'attachment; filename="placet-evidence-{told["id"]}.zip"'
    assert file["Cache-Control"] == "no-store"
    path = home / "packs" / f"{told['id']}.zip"
    assert bytes(file.getvalue()) == path.read_bytes()
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(path.parent).st_mode & 0o777 == 0o700
    assert verifier.main([str(path), "--json"]) == 0
    assert [each["id"] for each in root.get(PACKS).json()["results"]] == [told["id"]]


def test_the_pack_of_one_call_comes_at_once_and_is_the_one_a_worker_makes(root: Client, done: Call, home: Path) -> None:
    at_once = content(root, f"/api/calls/{done.pk}/evidence/")
    assert subjects(at_once) == {("call", str(done.pk))}
    later = made(root, {"call": str(done.pk)})
    assert content(root, later["url"]) == at_once
    assert [path.name for path in (home / "packs").iterdir()] == [f"{later['id']}.zip"]


@pytest.mark.parametrize(("form", "first"), [("jsonl", b'{"id":'), ("csv", b'"id","subject_kind"')])
def test_an_export_of_many_events_is_made_the_same_way(root: Client, done: Call, form: str, first: bytes) -> None:
    told = made(root, {"filters": {"subject_kind": "call"}, "form": form})
    exported = content(root, told["url"])
    assert exported.startswith(first)
    streamed = root.get("/api/audit/events/export/", {"subject_kind": "call", "format": form})
    assert exported == b"".join(streamed.streaming_content)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("body", "status", "where"),
    [
        ({}, 422, "call"),
        ({"call": str(uuid4()), "filters": {}}, 422, "call"),
        ({"call": str(uuid4())}, 404, ""),
        ({"call": "x"}, 422, "call"),
        ({"filters": {"subjekt": "x"}}, 422, "filters.subjekt"),
        ({"filters": {"since": "yesterday"}}, 422, "filters.since"),
        ({"filters": {"since": "0001-01-01T00:00:00+23:59"}}, 422, "filters.since"),
        ({"filters": {"search": "x" * 501}}, 422, "filters.search"),
        ({"filters": {"actor": "a\0b"}}, 400, "NUL"),
        ({"filters": {"actor": {"a": 1}}}, 422, "filters.actor"),
        ({"filters": []}, 422, "filters"),
        ({"filters": {}, "form": "exe"}, 422, "form"),
        ({"filters": {}, "more": 1}, 422, "more"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(root: Client, body: Any, status: int, where: str) -> None:
    answer = ask(root, body)
    assert answer.status_code == status
    assert where in json.dumps(answer.json())
    assert not Pack.objects.exists()
    assert not Event.objects.filter(subject_kind="pack").exists()


def test_asking_is_on_record_and_does_not_change_what_is_asked_for(root: Client, done: Call) -> None:
    before = content(root, f"/api/calls/{done.pk}/evidence/")
    told = made(root, {"call": str(done.pk)})
    assert content(root, f"/api/calls/{done.pk}/evidence/") == before
    event = Event.objects.get(subject_kind="pack", subject_id=told["id"])
    assert (event.event, event.actor) == ("pack.asked", "user:root")


def test_who_sees_no_events_gets_an_empty_pack_and_no_pack_of_a_call(done: Call) -> None:
    _, client = person("stranger")
    assert client.get(f"/api/calls/{done.pk}/evidence/").status_code == 404
    assert ask(client, {"call": str(done.pk)}).status_code == 404
    told = made(client, {"filters": {}})
    assert (told["state"], told["total"]) == ("done", 0)
    assert subjects(content(client, told["url"])) == set()
    assert Client().get(f"/api/calls/{done.pk}/evidence/").status_code == 401
    assert ask(Client(), {"filters": {}}).status_code == 401


def test_an_owner_an_auditor_and_an_agent_each_get_what_they_see(done: Call, lab: ToolkitVersion) -> None:
    owner, theirs = person("owner")
    Agent.objects.filter(name="tester").update(owner=owner)
    assert subjects(content(theirs, made(theirs, {"filters": {}})["url"])) == {
        ("call", str(done.pk)),
        ("agent", "tester"),
    }
    auditor, audits = person("auditor")
    assign_perm("registry.audit_toolkit", auditor, lab.toolkit)
    pack = content(audits, f"/api/calls/{done.pk}/evidence/")
    assert subjects(pack) == {("call", str(done.pk))}
    assert "tools/Lab@1.0.0.yaml" in zipfile.ZipFile(BytesIO(pack)).namelist()
    everyone, all_events = person("everyone")
    everyone.user_permissions.add(Permission.objects.get(codename="view_event"))
    assert ("policy", "1") in subjects(content(all_events, made(all_events, {"filters": {}})["url"]))
    key = {"Authorization": f"Bearer {agents.new_key(Agent.objects.get(name='tester'), actor='shell')}"}
    assert subjects(content(Client(), f"/api/calls/{done.pk}/evidence/", **key)) == {("call", str(done.pk))}
    agents_pack = made(Client(), {"filters": {"subject_kind": "call"}}, **key)
    assert subjects(content(Client(), agents_pack["url"], **key)) == {("call", str(done.pk))}
    other = {"Authorization": f"Bearer {agents.create('other', actor='shell', call=['Lab']).key}"}
    assert Client().get(f"/api/calls/{done.pk}/evidence/", headers=other).status_code == 404


def test_a_pack_belongs_to_who_asked_for_it(root: Client, done: Call) -> None:
    told = made(root, {"filters": {}})
    another = client_of(User.objects.create_superuser("another"))
    for address in (f"{PACKS}{told['id']}/", told["url"]):
        assert another.get(address).status_code == 404
    assert another.get(PACKS).json()["count"] == 0


def test_whoever_lost_the_right_to_see_it_cannot_download_it(done: Call, lab: ToolkitVersion) -> None:
    auditor, client = person("auditor")
    auditor.user_permissions.add(Permission.objects.get(codename="view_event"))
    told = made(client, {"filters": {}})
    assert content(client, told["url"])
    auditor.user_permissions.clear()
    refused = client.get(told["url"])
    assert refused.status_code == 410
    assert refused.json()["code"] == "pack_gone"


def test_a_call_that_moves_on_takes_no_pack_away(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    queued = row(call("Ring", ledger="/nowhere"))
    told = made(root, {"filters": {"call.state": "queued,running"}})
    assert told["total"] == 3
    calls.cancel(queued, actor="shell")
    assert subjects(content(root, told["url"])) == {("call", str(queued.pk))}


@pytest.mark.parametrize("right", ["audit", "approve", "owner", "group"])
def test_each_right_that_showed_an_event_is_needed_to_download_it(right: str, done: Call, lab: ToolkitVersion) -> None:
    user, client = person("someone")
    group = Group.objects.create(name="auditors")
    match right:
        case "owner":
            Agent.objects.filter(name="tester").update(owner=user)
        case "group":
            user.groups.add(group)
            assign_perm("registry.audit_toolkit", group, lab.toolkit)
        case _:
            assign_perm(f"registry.{right}_toolkit", user, lab.toolkit)
    told = made(client, {"filters": {"subject_kind": "call"}})
    assert content(client, told["url"])
    match right:
        case "owner":
            Agent.objects.filter(name="tester").update(owner=None)
        case "group":
            user.groups.clear()
        case _:
            remove_perm(f"registry.{right}_toolkit", user, lab.toolkit)
    assert client.get(told["url"]).status_code == 410


def test_the_rights_at_the_time_of_making_count_not_those_at_asking(done: Call) -> None:
    auditor, client = person("auditor")
    auditor.user_permissions.add(Permission.objects.get(codename="view_event"))
    asked = ask(client, {"filters": {}}).json()
    auditor.user_permissions.clear()
    packs.work_off(asked["id"])
    assert Pack.objects.get(pk=asked["id"]).total == 0


def test_one_person_has_a_few_packs_under_way_at_most(root: Client) -> None:
    for _ in range(packs.MAX_OPEN):
        assert ask(root, {"filters": {}}).status_code == 202
    assert ask(root, {"filters": {}}).status_code == 409


def test_more_events_than_fit_are_refused_in_words(root: Client, done: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "MAX_EVENTS", 3)
    told = made(root, {"filters": {}})
    assert told["state"] == "failed"
    assert "narrow the filters" in told["error"]
    assert root.get(f"{PACKS}{told['id']}/download/").status_code == 410


def test_a_failure_leaves_no_half_file(
    root: Client, done: Call, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("execution.evidence.manifest_text", lambda version: 1 / 0)
    told = made(root, {"call": str(done.pk)})
    assert (told["state"], told["error"]) == ("failed", "Placet failed to make it; the log of the worker says why.")
    assert "ZeroDivisionError" in caplog.text
    assert list((home / "packs").iterdir()) == []


def test_a_lost_worker_is_replaced_and_a_lost_message_sent_again(root: Client, sent: list[Any]) -> None:
    id = ask(root, {"filters": {}}).json()["id"]
    pack = Pack.objects.get(pk=id)
    assert packs._take(pack.pk) is not None
    assert packs._take(pack.pk) is None
    Pack.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    sent.clear()
    packs.sweep()
    assert sent == [pack.pk]
    packs.work_off(pack.pk)
    pack.refresh_from_db()
    assert (pack.state, pack.attempts) == ("done", 2)


def test_the_third_lost_worker_was_the_last(root: Client) -> None:
    id = ask(root, {"filters": {}}).json()["id"]
    past = timezone.now() - timedelta(seconds=1)
    Pack.objects.update(state="running", attempts=packs.MAX_ATTEMPTS, lease_until=past)
    packs.sweep()
    assert root.get(f"{PACKS}{id}/").json()["state"] == "failed"


def test_a_day_later_row_and_file_are_gone(root: Client, done: Call, home: Path) -> None:
    told = made(root, {"filters": {}})
    stray = home / "packs" / "stray.1.part"
    stray.write_text("x")
    packs.sweep()
    assert content(root, told["url"])
    Pack.objects.update(finished_at=timezone.now() - timedelta(days=1, seconds=1))
    os.utime(stray, (0, 0))
    packs.sweep()
    assert root.get(f"{PACKS}{told['id']}/").status_code == 404
    assert list((home / "packs").iterdir()) == []


def test_a_file_on_another_machine_is_told_so(root: Client, done: Call, home: Path) -> None:
    told = made(root, {"filters": {}})
    (home / "packs" / f"{told['id']}.zip").unlink()
    refused = root.get(told["url"])
    assert refused.status_code == 410
    assert "another machine" in refused.json()["message"]


def test_the_public_keys_are_told_to_whoever_is_known(root: Client) -> None:
    (key,) = root.get(f"{PACKS}keys/").json().values()
    assert len(bytes.fromhex(key)) == 32
    assert Client().get(f"{PACKS}keys/").status_code == 401


def test_scope_reads_the_beginning_of_an_actor(done: Call) -> None:
    from execution.viewer import SHELL

    assert Scope(filters={"actor_prefix": "agent:"}).events(SHELL).count() == 1
