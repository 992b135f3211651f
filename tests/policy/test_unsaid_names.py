"""Whoever has no secret cannot find out which agents there are."""

import time

import jwt
import pytest

from policy import agents
from policy.agents import NewAgent
from policy.authentication import NotAuthenticated, authenticate


def test_a_token_for_no_agent_is_refused_like_one_with_a_wrong_signature(made: NewAgent) -> None:
    gone = agents.create("gone", actor="shell")
    agents.set_active(gone.agent, False, actor="shell")
    told = set()
    for name in ("demo", "gone", "nobody", "", "agent:demo"):
        token = jwt.encode({"sub": name, "exp": int(time.time()) + 300}, "not the secret of anyone" * 2, "HS256")
        with pytest.raises(NotAuthenticated) as refused:
            authenticate({"Authorization": f"Bearer {token}"})
        told.add(str(refused.value))
    assert len(told) == 1
