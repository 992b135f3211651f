"""A registry with the examples' toolkits, an agent that may call them, and one that may not.

Models are imported late, once Django has its settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

if TYPE_CHECKING:
    from policy.agents import NewAgent
    from registry.models import ToolkitVersion
    from tests.protocols.toolkits import Hands, Publish


@pytest.fixture
def publish(db: None) -> Publish:
    """Import a manifest and publish it."""
    from django.contrib.auth import get_user_model

    from registry import manifests, publishing

    author = get_user_model().objects.create_user("author")

    def published(manifest: dict[str, Any]) -> ToolkitVersion:
        return publishing.publish(manifests.import_manifest(manifest, by=author).version, by=author)

    return published


@pytest.fixture
def toolkits(publish: Publish) -> dict[str, ToolkitVersion]:
    from tests.protocols.toolkits import DOORBELL, MAIL, calculator

    all_of_them = [calculator("1.0.0"), calculator("1.1.0", "c"), DOORBELL, MAIL]
    return {str(version): version for version in map(publish, all_of_them)}


@pytest.fixture
def hands(toolkits: dict[str, ToolkitVersion], monkeypatch: pytest.MonkeyPatch) -> Hands:
    """What runs the tools of the examples, in place of every runtime."""
    from execution.pipeline import perform
    from tests.protocols.toolkits import Hands

    fake = Hands()
    monkeypatch.setattr(perform, "runtime_for", lambda tool: fake)
    return fake


@pytest.fixture
def robot(db: None) -> NewAgent:
    """An agent that may call every toolkit there is."""
    from policy import agents

    return agents.create("robot", actor="shell", call_all=True)


@pytest.fixture
def stranger(db: None) -> NewAgent:
    """An agent with a good key and no permission."""
    from policy import agents

    return agents.create("stranger", actor="shell")


@pytest.fixture(scope="session")
def client() -> Client:
    """As a stranger's program would: no cookies, CSRF enforced. One for all, for its middleware takes long to load."""
    return Client(enforce_csrf_checks=True)
