"""One toolkit, one agent that may call it, and a person; models are imported late, once Django has its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from policy.agents import NewAgent
    from registry.models import Toolkit


@pytest.fixture
def toolkit(db: None) -> Toolkit:
    from registry.models import Toolkit

    return Toolkit.objects.create(name="Calculator")


@pytest.fixture
def other_toolkit(db: None) -> Toolkit:
    from registry.models import Toolkit

    return Toolkit.objects.create(name="Mail")


@pytest.fixture
def made(toolkit: Toolkit) -> NewAgent:
    """The agent "demo" with its secrets; it may call Calculator."""
    from policy import agents

    return agents.create("demo", actor="shell", call=["Calculator"])


@pytest.fixture
def person(db: None) -> User:
    from django.contrib.auth.models import User

    return User.objects.create_user("petra", password="correct horse battery")
