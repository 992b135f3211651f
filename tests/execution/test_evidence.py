"""Evidence packs: everything about a call in one file, which no one can change unnoticed."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from audit import trail, verifier
from audit.attestation import published_keys
from audit.models import Event
from audit.sealing import seal_new_events
from execution.evidence import write_pack
from execution.models import Call
from execution.scope import Scope
from execution.viewer import SHELL, Viewer
from policy import revisions
from policy.decision import Effect
from policy.rulespec import RuleSpec
from tests.execution.conftest import Call as MakeCall
from tests.execution.test_timeline import row, succeeded, tamper

pytestmark = pytest.mark.django_db

HOSTILE = '<script>\x1b[2J\u202e"\r\n\0'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> Path:
    settings.PLACET_HOME = tmp_path
    return tmp_path


@pytest.fixture
def done(call: MakeCall, unsent: list[Any]) -> Call:
    """A call that ended, among the events of others, sealed."""
    trail.record("agent", "before", "agent.changed", actor="shell")
    made = succeeded(call, value={"said": HOSTILE.replace("\0", "")})
    for number in range(5):
        trail.record("agent", "after", "agent.changed", actor="shell", detail={"n": number})
    assert seal_new_events() is not None
    return made


def packed(scope: Scope, viewer: Viewer = SHELL) -> bytes:
    file = io.BytesIO()
    write_pack(file, scope, viewer)
    return file.getvalue()


def verdict(content: bytes, place: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """What the verifier says, as a program of its own that sees nothing but the standard library."""
    file = place / f"{uuid4()}.zip"
    file.write_bytes(content)
    command = [sys.executable, "-I", "-S", verifier.__file__, str(file), "--json", *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert not ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def judged(content: bytes, place: Path) -> str:
    """The first bad thing that the verifier finds, in this process; empty if there is none."""
    file = place / "judged.zip"
    file.write_bytes(content)
    out = io.StringIO()
    saved, sys.stdout = sys.stdout, out
    try:
        code = verifier.main([str(file), "--json"])
    finally:
        sys.stdout = saved
    told = json.loads(out.getvalue())
    assert code == int(not told["ok"])
    return "" if told["ok"] else f"{told['first_bad']['where']}: {told['first_bad']['what']}"


def unpacked(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as pack:
        return {name: pack.read(name) for name in pack.namelist()}


def test_a_pack_holds_everything_about_a_call_and_verifies_with_python_alone(done: Call, tmp_path: Path) -> None:
    content = packed(Scope(call=done.pk))
    found = unpacked(content)
    assert set(found) == {
        "events.jsonl",
        "events.rows",
        "seals.jsonl",
        "proofs.jsonl",
        "keys.json",
        "calls.jsonl",
        "tools.json",
        "tools/Lab@1.0.0.yaml",
        "README.txt",
        "verify.py",
        "manifest.json",
        "manifest.sig",
    }
    events = [json.loads(line) for line in found["events.jsonl"].splitlines()]
    assert [event["event"] for event in events] == [
        "call.received",
        "call.decided",
        "call.queued",
        "call.started",
        "call.succeeded",
    ]
    assert {event["subject_id"] for event in events} == {str(done.pk)}
    (call,) = (json.loads(line) for line in found["calls.jsonl"].splitlines())
    assert (call["id"], call["state"]) == (str(done.pk), "succeeded")
    (tool,) = json.loads(found["tools.json"])
    assert done.tool is not None
    assert (tool["tool_id"], tool["digest"]) == ("Lab.Ring@1.0.0", done.tool.digest)
    code, told = verdict(content, tmp_path)
    assert (code, told["ok"]) == (0, True)
    assert any("5 events with these hashes existed" in each for each in told["checked"])


def test_the_same_evidence_makes_the_same_bytes(done: Call) -> None:
    assert packed(Scope(call=done.pk)) == packed(Scope(call=done.pk))
    trail.record("agent", "later", "agent.changed", actor="shell")
    everything = Scope(filters={"subject_kind": "call"})
    assert packed(everything) == packed(everything)


def test_a_change_of_any_byte_of_any_file_is_found(done: Call, tmp_path: Path) -> None:
    """Each byte of the whole zip: names, headers, compressed data, directory and all."""
    content = packed(Scope(call=done.pk))
    assert judged(content, tmp_path) == ""
    step = max(1, len(content) // 400)
    dense = [*range(60), *range(len(content) - 700, len(content))]
    for place in {*range(0, len(content), step), *dense}:
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        assert judged(bytes(changed), tmp_path), f"a change of byte {place} went unnoticed"


def test_a_change_in_the_unpacked_folder_is_found_in_every_file(done: Call, tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    zipfile.ZipFile(io.BytesIO(packed(Scope(call=done.pk)))).extractall(folder)
    assert verifier.main([str(folder), "--json"]) == 0
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        content = path.read_bytes()
        for place in {0, len(content) // 2, len(content) - 1}:
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            assert verifier.main([str(folder), "--json"]) == 1, f"{path.name}, byte {place}"
        path.write_bytes(content)
    (folder / "planted.txt").write_text("and he agreed")
    assert verifier.main([str(folder), "--json"]) == 1


def test_a_changed_event_is_named(done: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "unpacked"
    zipfile.ZipFile(io.BytesIO(packed(Scope(call=done.pk)))).extractall(folder)
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    lines[2] = lines[2].replace("call.queued", "call.forged")
    (folder / "events.jsonl").write_text("".join(lines))
    assert verifier.main([str(folder)]) == 1
    told = capsys.readouterr().out
    id = json.loads(lines[2])["id"]
    assert f"First bad row: events.jsonl, row 3 (event {id} (call {done.pk}, number 3))" in told


def test_whoever_signs_with_another_key_is_found_out_by_the_key_one_trusts(
    done: Call, tmp_path: Path, settings: Any
) -> None:
    (ours,) = published_keys().values()
    content = packed(Scope(call=done.pk))
    assert verdict(content, tmp_path, "--key", ours)[0] == 0
    settings.PLACET_SEAL_SEED = bytes(32)
    forged = packed(Scope(call=done.pk))
    code, told = verdict(forged, tmp_path, "--key", ours)
    assert code == 1
    assert "not the one you trust" in told["first_bad"]["what"]


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE audit_event SET actor = 'user:eve' WHERE event = 'call.queued'", "keyed hash did not fit"),
        ("UPDATE audit_event SET hash = prev_hash WHERE event = 'call.queued'", "do not lead to the root"),
        ("DELETE FROM audit_event WHERE event = 'call.queued'", "do not lead to the root"),
        ("DELETE FROM audit_event WHERE subject_id = 'after' AND seq = 2", "do not lead to the root"),
        ("UPDATE audit_seal SET count = count - 1", "signature does not fit"),
    ],
)
def test_what_was_changed_in_the_database_before_shows_in_the_pack(
    done: Call, tmp_path: Path, statement: str, what: str
) -> None:
    tamper(statement)
    assert what in judged(packed(Scope(call=done.pk)), tmp_path)


def test_events_that_wait_for_their_seal_are_said_to(call: MakeCall, unsent: list[Any], tmp_path: Path) -> None:
    made = row(call("Ring", ledger="/nowhere"))
    code, told = verdict(packed(Scope(call=made.pk)), tmp_path)
    assert code == 0
    assert any("3 events were not sealed yet" in each for each in told["checked"])


def test_a_range_is_packed_over_many_seals_and_verifies(done: Call, call: MakeCall, tmp_path: Path) -> None:
    for number in range(4):
        trail.record("agent", f"agent-{number}", "agent.changed", actor="shell")
        row(call("Ring", ledger="/nowhere"))
        assert seal_new_events() is not None
    content = packed(Scope(filters={"subject_kind": "call", "search": "call."}))
    assert len(unpacked(content)["seals.jsonl"].splitlines()) == 5
    assert len(unpacked(content)["calls.jsonl"].splitlines()) == 5
    assert judged(content, tmp_path) == ""
    assert judged(packed(Scope(filters={"event": "call.queued"})), tmp_path) == ""
    assert judged(packed(Scope(filters={"event": "nothing.like.it"})), tmp_path) == ""


def test_the_policy_that_judged_is_packed_for_those_who_may_read_it(
    call: MakeCall, unsent: list[Any], tmp_path: Path
) -> None:
    root = User.objects.create_superuser("root")
    draft = revisions.new_draft(
        by=root, rules=[RuleSpec(name="rings go through", tools=("Lab.*",), effect=Effect.ALLOW)]
    )
    revisions.activate(draft, by=root)
    made = row(call("Ring", ledger="/nowhere"))
    name = f"policy/revision-{draft.number}.yaml"
    assert b"rings go through" in unpacked(packed(Scope(call=made.pk)))[name]
    made.agent.owner = User.objects.create_user("owner")
    made.agent.save()
    theirs = packed(Scope(call=made.pk), Viewer(user=made.agent.owner))
    found = unpacked(theirs)
    assert name not in found
    assert not any(each.startswith("tools/") for each in found)
    told = json.loads(found["manifest.json"])["left_out"]
    assert [each.partition(":")[0] for each in told] == [
        f"the text of policy revision {draft.number}",
        "the manifest of Lab@1.0.0",
    ]
    assert json.loads(found["tools.json"])[0].keys() == {"tool_id", "digest", "version_digest"}
    assert judged(theirs, tmp_path) == ""


def test_hostile_texts_stay_in_their_rows_and_reach_no_terminal(
    call: MakeCall, unsent: list[Any], tmp_path: Path
) -> None:
    made = succeeded(call, value=HOSTILE.replace("\0", ""))
    trail.record("agent", f"x{HOSTILE}".replace("\0", "")[:200], "agent.changed", actor="user:eve\u2028")
    content = packed(Scope(filters={}))
    found = unpacked(content)
    events = found["events.jsonl"]
    assert events.isascii()
    assert events.count(b"\n") == Event.objects.count() == len(found["events.rows"].splitlines())
    assert b"\x1b" not in b"".join(found[name] for name in ("calls.jsonl", "tools.json", "manifest.json"))
    assert judged(content, tmp_path) == ""
    tamper("UPDATE audit_event SET outcome = 'edited' WHERE actor LIKE 'user:eve%%'")
    folder = tmp_path / "x.zip"
    folder.write_bytes(packed(Scope(filters={})))
    ended = subprocess.run([sys.executable, verifier.__file__, folder], capture_output=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert ended.stdout.isascii()
    assert b"\x1b" not in ended.stdout
    assert made.pk


def test_the_command_writes_a_closed_file_and_never_over_another(
    done: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pack.zip"
    call_command("make_evidence", str(done.pk), out=str(out))
    assert "5 events, 1 seals." in capsys.readouterr().out
    assert os.stat(out).st_mode & 0o777 == 0o600
    assert out.read_bytes() == packed(Scope(call=done.pk))
    for id, wrong in ((str(done.pk), "cannot be written"), (str(uuid4()), "There is no call"), ("x", "not the id")):
        with pytest.raises(CommandError, match=wrong):
            call_command("make_evidence", id, out=str(out))


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_pack_is_told_so(content: bytes, tmp_path: Path) -> None:
    assert judged(content, tmp_path)
    assert verifier.main([str(tmp_path / "nowhere.zip")]) == 2
