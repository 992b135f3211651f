"""What policy says, as the contract's door tells it: denied, wait for a person, too many."""

import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from execution.models import Call
from execution.pipeline.perform import perform
from policy import approvals, revisions
from policy.agents import NewAgent
from policy.decision import Ask, Effect, Limits
from policy.models import Approval
from policy.rulespec import RuleSpec
from registry.models import ToolkitVersion
from tests.execution.approving import approver
from tests.protocols.test_contract_door import envelope, execute
from tests.protocols.toolkits import Hands

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("execution.dispatch.send", lambda call, delay=0.0: True)


@pytest.fixture
def ana(toolkits: dict[str, ToolkitVersion]) -> User:
    return approver("ana", toolkits["Calculator@1.1.0"].toolkit)


def rule(effect: Effect, limits: Limits | None = None, decide_within: int = 600) -> None:
    ask = Ask(decide_within=decide_within) if effect is Effect.ASK else None
    spec = RuleSpec(name="the house rule", tools=("Calculator.*",), effect=effect, limits=limits, ask=ask)
    revisions.activate(revisions.new_draft(by=None, rules=[spec]), by=None)


def told(response: Any) -> tuple[int, str, str, str, bool]:
    body, error = response.json(), response.json()["error"]
    return response.status_code, body["status"], error["code"], error["reason"], error["retryable"]


def test_check_16_a_denial_names_the_rule_and_is_final(client: Client, robot: NewAgent, hands: Hands) -> None:
    rule(Effect.DENY)
    response = execute(client, robot, envelope())
    assert told(response) == (403, "denied", "permission_denied", "tool_permission_denied", False)
    assert response.json()["error"]["details"]["rule"] == "the house rule"
    assert hands.runs == []


def test_check_75_a_call_that_waits_for_people_pauses_and_then_gives_its_result(
    client: Client, robot: NewAgent, hands: Hands, ana: User
) -> None:
    rule(Effect.ASK)
    response = execute(client, robot, envelope())
    approval = Approval.objects.get()
    assert told(response) == (202, "error", "approval_pending", "tool_approval_pending", False)
    assert response.json()["error"]["details"]["approval_url"].endswith(f"/approvals/{approval.pk}/")
    assert execute(client, robot, envelope()).status_code == 202
    approvals.decide(approval.pk, by=ana, answer="approve", reason="fine")
    perform(approval.call)
    assert execute(client, robot, envelope()).json()["output"] == {"result": 3}
    assert Call.objects.count() == len(hands.runs) == 1


def test_check_75_what_people_refuse_is_denied(client: Client, robot: NewAgent, hands: Hands, ana: User) -> None:
    rule(Effect.ASK)
    execute(client, robot, envelope())
    approvals.decide(Approval.objects.get().pk, by=ana, answer="deny", reason="not today")
    response = execute(client, robot, envelope())
    assert told(response) == (403, "denied", "approval_denied", "tool_approval_denied", False)
    assert "not today" in response.json()["error"]["message"]


def test_check_75_what_nobody_decides_times_out(client: Client, robot: NewAgent, hands: Hands, ana: User) -> None:
    rule(Effect.ASK, decide_within=1)
    execute(client, robot, envelope())
    time.sleep(1.05)
    approvals.expire_due()
    response = execute(client, robot, envelope())
    assert told(response) == (408, "error", "approval_timeout", "tool_approval_timeout", False)


def test_a_limit_that_is_reached_is_told_with_its_time(client: Client, robot: NewAgent, hands: Hands) -> None:
    rule(Effect.ALLOW, Limits(per_minute=1))
    execute(client, robot, envelope())
    response = execute(client, robot, envelope(request_id="req-2"))
    assert told(response) == (429, "error", "rate_limited", "tool_rate_limited", True)
    assert int(response["Retry-After"]) >= 1
    assert not Call.objects.filter(call_id="req-2").exists()
