"""Demo data: there at the first start, whole or not at all, and never over someone's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured

from config import demo
from policy import agents
from policy.caller import Caller
from policy.engine import decide
from policy.models import Agent
from policy.question import Question
from registry.models import ToolkitVersion
from registry.resolution import resolve
from registry.toolref import ToolRef

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
    assert published == ["Calculator@1.0.0", "Calculator@1.1.0", "Doorbell@0.1.0", "Payments@1.0.0", "System@1.0.0"]
    assert [person["username"] for person in made["approvers"]] == ["ana", "ben"]
    assert all(User.objects.get(username=p["username"]).check_password(p["password"]) for p in made["approvers"])
    assert demo.ensure(tmp_path, URL) == (made, False)
    assert Agent.objects.count() == 1


def test_the_demo_policy_lets_small_refunds_through_and_asks_for_the_rest(tmp_path: Path) -> None:
    demo.ensure(tmp_path, URL)
    agent = Agent.objects.get()
    caller = Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="key")

    def effect(tool: str, **arguments: object) -> tuple[str, int]:
        ref = ToolRef.parse(f"Payments.{tool}")
        assert ref is not None
        spec = resolve(ref)
        assert spec is not None
        decision = decide(Question(caller=caller, tool=spec, arguments=arguments))
        return decision.effect, decision.ask.quorum if decision.ask else 0

    assert effect("Refund", order="A-1", amount=50) == ("allow", 0)
    assert effect("Refund", order="A-1", amount=50.01) == ("ask", 1)
    assert effect("Payout", account="X", amount=1) == ("ask", 2)


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


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b"7", b"{}", b'{"agents": []}'])
def test_a_damaged_file_is_named_and_not_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "demo.json").write_bytes(content)
    with pytest.raises(ImproperlyConfigured, match=r"demo\.json is damaged"):
        demo.ensure(tmp_path, URL)
    assert (tmp_path / "demo.json").read_bytes() == content
    assert not User.objects.exists()


def test_a_failure_halfway_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise agents.AgentError("no more agents")

    monkeypatch.setattr(agents, "create", fail)
    with pytest.raises(agents.AgentError):
        demo.ensure(tmp_path, URL)
    assert list(tmp_path.iterdir()) == []
    assert not User.objects.exists()
    assert not ToolkitVersion.objects.exists()
