"""Demo data: there at the first start, whole or not at all, and never over someone's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from config import demo
from policy import agents
from policy.models import Agent
from registry.models import ToolkitVersion

pytestmark = pytest.mark.django_db

URL = "http://127.0.0.1:8000"


def test_the_first_start_makes_everything_and_the_second_changes_nothing(tmp_path: Path) -> None:
    made, is_first = demo.ensure(tmp_path, URL)
    assert is_first
    assert made is not None
    assert made == json.loads((tmp_path / "demo.json").read_text())
    assert (tmp_path / "demo.json").stat().st_mode & 0o777 == 0o600
    assert User.objects.get(username="admin").check_password(made["admin"]["password"])
    published = sorted(str(version) for version in ToolkitVersion.objects.callable())
    assert published == ["Calculator@1.0.0", "Calculator@1.1.0", "Doorbell@0.1.0", "System@1.0.0"]
    assert demo.ensure(tmp_path, URL) == (made, False)
    assert Agent.objects.count() == 1


def test_another_port_is_noted_and_the_secrets_stay(tmp_path: Path) -> None:
    made, _ = demo.ensure(tmp_path, URL)
    kept, _ = demo.ensure(tmp_path, "http://127.0.0.1:9000")
    assert made is not None
    assert kept == made | {"url": "http://127.0.0.1:9000"}
    assert json.loads((tmp_path / "demo.json").read_text()) == kept


def test_a_database_with_users_gets_no_demo_data(tmp_path: Path) -> None:
    User.objects.create_user("someone")
    assert demo.ensure(tmp_path, URL) == (None, False)
    assert not (tmp_path / "demo.json").exists()
    assert not ToolkitVersion.objects.exists()


def test_a_failure_halfway_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise agents.AgentError("no more agents")

    monkeypatch.setattr(agents, "create", fail)
    with pytest.raises(agents.AgentError):
        demo.ensure(tmp_path, URL)
    assert list(tmp_path.iterdir()) == []
    assert not User.objects.exists()
    assert not ToolkitVersion.objects.exists()
