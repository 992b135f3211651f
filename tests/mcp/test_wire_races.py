"""Clients that come at the same moment, on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from execution.models import McpSession
from policy import agents
from tests.execution.racing import race
from tests.mcp.wire import initialize

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 15


def test_22_sessions_begun_at_once_stay_within_the_cap(settings: Any) -> None:
    settings.PLACET_MAX_SESSIONS = 1
    many = [agents.create(f"many-{number}", actor="shell") for number in range(ROUNDS)]

    def begin(number: int) -> int:
        status: int = initialize(many[number]).status_code
        return status

    for statuses in race(begin, begin, begin, rounds=ROUNDS):
        assert sorted(statuses) == [200, 429, 429]
    assert McpSession.objects.count() == ROUNDS
