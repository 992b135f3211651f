"""A published lab of misbehaving tools, an agent that may call it, and ways to call; models are imported late."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from execution.messages import CallContext, CallOutcome
    from policy.caller import Caller
    from registry.models import ToolkitVersion

LAB = Path(__file__).parents[1] / "toolkits" / "lab"

Call = Callable[..., "CallOutcome"]


@pytest.fixture
def people(db: None) -> dict[str, User]:
    from django.contrib.auth.models import User

    names = ("author", "reviewer")
    return {name: User.objects.create_user(name, password="a password of some length") for name in names}


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab beside its manifest, so that its code is loaded once and not for every test."""
    from placet.toolkit import collect

    folder = tmp_path_factory.mktemp("lab")
    shutil.copy(LAB / "lab.py", folder)
    (folder / "manifest.json").write_text(json.dumps(collect(LAB)))
    return folder


@pytest.fixture
def lab(people: dict[str, User], lab_folder: Path) -> ToolkitVersion:
    from registry.manifests import import_folder
    from registry.publishing import publish

    (imported,) = import_folder(lab_folder, by=people["author"])
    return publish(imported.version, by=people["author"], reviewed_by=people["reviewer"])


@pytest.fixture
def caller(lab: ToolkitVersion) -> Caller:
    from policy import agents
    from policy.caller import Caller

    agent = agents.create("tester", actor="shell", call=["Lab"]).agent
    return Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="key:test")


@pytest.fixture
def at_once() -> Iterator[None]:
    """Queued calls run as soon as they are sent, in this process."""
    from config.celery import app

    app.conf.task_always_eager = app.conf.task_eager_propagates = True
    yield
    app.conf.task_always_eager = app.conf.task_eager_propagates = False


@pytest.fixture
def unsent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Nothing reaches a worker: as if the broker lost it. Holds the ids that would have been sent."""
    lost: list[Any] = []

    def send(call: Any, delay: float = 0.0) -> bool:
        lost.append(call)
        return True

    monkeypatch.setattr("execution.dispatch.send", send)
    return lost


@pytest.fixture
def call(caller: Caller) -> Call:
    """Call a tool of the lab by name; keyword arguments are its input."""
    from execution.messages import CallContext, CallRequest
    from execution.pipeline.admit import admit
    from registry.toolref import ToolRef

    def make(
        tool: str,
        *,
        wait: float = 0.0,
        call_id: str | None = None,
        context: CallContext | None = None,
        **arguments: Any,
    ) -> CallOutcome:
        text = tool if "." in tool else f"Lab.{tool}"
        return admit(
            CallRequest(
                caller=caller,
                door="test",
                tool_text=text,
                tool_ref=ToolRef.parse(text),
                arguments=arguments,
                context=context or CallContext(),
                call_id=call_id,
                wait=wait,
            )
        )

    return make


@pytest.fixture
def ana(lab: ToolkitVersion) -> User:
    from tests.execution.approving import approver

    return approver("ana", lab.toolkit)


@pytest.fixture
def ben(lab: ToolkitVersion) -> User:
    from tests.execution.approving import approver

    return approver("ben", lab.toolkit)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Where a tool leaves a line each time it runs."""
    return tmp_path / "ledger"
