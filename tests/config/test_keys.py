"""The keys of a home: kept to its owner, whole, and never made anew for data that needs the old ones."""

from __future__ import annotations

import base64
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from audit import trail
from config import env, keys

KEY = base64.b64encode(b"k" * 32).decode()
WHOLE: dict[str, Any] = {"django": "d" * 50, "audit": KEY, "seal_seed": KEY, "sealing": {"k1": KEY}}


def refusal_of(home: Path, database: dict[str, Any] | None = None) -> str:
    """Why the keys of a home are not had, in one line that names the file."""
    with pytest.raises(ImproperlyConfigured) as refusal:
        keys.from_home(home, database)
    told = str(refusal.value)
    assert told.startswith(str(home / "keys.json"))
    assert "\n" not in told
    return told


@pytest.mark.django_db(transaction=True)
def test_no_new_keys_are_made_for_a_database_that_had_others(tmp_path: Path) -> None:
    trail.record("user", "ada", "user.created", actor="system")
    assert "restore" in refusal_of(tmp_path, connection.settings_dict)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "keys.json").write_text(json.dumps(WHOLE))
    assert keys.from_home(tmp_path, connection.settings_dict).audit == b"k" * 32


@pytest.mark.django_db(transaction=True)
def test_keys_are_made_for_a_database_without_events(tmp_path: Path) -> None:
    database = connection.settings_dict
    if connection.vendor == "sqlite":  # a file that holds anything was made after the keys
        database = env.sqlite(tmp_path / "placet.sqlite3")
        (tmp_path / "placet.sqlite3").touch()
    assert keys.from_home(tmp_path, database) == keys.from_home(tmp_path, database)


def test_a_file_that_nothing_closes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keys.json").write_text(json.dumps(WHOLE))
    (tmp_path / "keys.json").chmod(0o644)
    monkeypatch.setattr(Path, "chmod", lambda *_: None)  # as on file systems without owners
    assert "stays open to others" in refusal_of(tmp_path)


def test_no_keys_are_made_while_the_database_cannot_be_asked(tmp_path: Path) -> None:
    assert "cannot be found out" in refusal_of(tmp_path, env.database("postgres://u:hunter2@127.0.0.1:1/db"))
    assert list(tmp_path.iterdir()) == []


def test_a_start_that_is_overtaken_takes_the_keys_of_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def has_past_now(path: Path, _: object) -> bool:
        path.write_text(json.dumps(WHOLE))
        return True

    monkeypatch.setattr(keys, "_has_past", has_past_now)
    assert keys.from_home(tmp_path, {}).audit == b"k" * 32


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        *(json.dumps(WHOLE | {name: ""}).encode() for name in WHOLE),
        *(json.dumps(WHOLE | {name: 7}).encode() for name in ("audit", "sealing")),
        json.dumps(WHOLE | {"audit": "c2hvcnQ="}).encode(),
        json.dumps(WHOLE | {"sealing": {}}).encode(),
    ],
)
def test_a_damaged_file_is_named_and_not_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "keys.json").write_bytes(content)
    assert "damaged" in refusal_of(tmp_path)
    assert (tmp_path / "keys.json").read_bytes() == content


def test_a_file_that_others_can_read_is_closed_to_them_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(WHOLE))
    path.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        keys.from_home(tmp_path)
        keys.from_home(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} was open to others (mode 0644); it is 0600 again"
    ]


def test_a_file_that_stays_open_to_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    (tmp_path / "keys.json").write_text(json.dumps(WHOLE))
    (tmp_path / "keys.json").chmod(0o640)
    monkeypatch.setattr(os, "chmod", refuse)
    assert "cannot be kept from others" in refusal_of(tmp_path)


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys.json").symlink_to(tmp_path / "not mounted")
    assert "No such file" in refusal_of(tmp_path)
