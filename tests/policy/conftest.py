"""One toolkit, one agent that may call it, and a person; models are imported late, once Django has its settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.protocols.conftest import hands, publish, robot, toolkits  # noqa: F401

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


@pytest.fixture
def issuer_keys(settings: Any, tmp_path: Path) -> Path:
    """The file of an authorization server's key set, which shows a key of each kind."""
    from tests.policy.issuer import EC, ISSUER, RSA, jwk, key_set

    path = tmp_path / "jwks.json"
    path.write_bytes(key_set(jwk(RSA, kid="r1", use="sig"), jwk(EC, kid="e1")))
    settings.PLACET_JWKS, settings.PLACET_JWT_ISSUERS = str(path), [ISSUER]
    settings.PLACET_URL = "https://placet.example"
    settings.PLACET_AUTHORIZATION_SERVERS = [ISSUER]
    return path
