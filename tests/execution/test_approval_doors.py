"""How each door says that a person must agree, that a limit is reached, and what came of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from execution.models import Call
from execution.pipeline.perform import perform
from policy import agents, approvals, revisions
from policy.decision import Effect, Limits
from policy.models import Approval
from policy.rulespec import RuleSpec
from registry.models import ToolkitVersion

pytestmark = pytest.mark.django_db

Post = Callable[..., Any]


@pytest.fixture
def post(lab: ToolkitVersion, unsent: list[Any], client: Client) -> Post:
    key = agents.create("bot", actor="shell", call=["Lab"]).key

    def send(path: str, body: dict[str, Any], **headers: str) -> Any:
        return client.post(path, body, content_type="application/json", headers={"OXP-API-Key": key} | headers)

    return send


def fire(ledger: Path) -> dict[str, Any]:
    return {"tool_id": "Lab.Fire", "input": {"ledger": str(ledger)}, "call_id": "one"}


def echo(call_id: str) -> dict[str, Any]:
    return {"tool_id": "Lab.Echo", "input": {"value": 1}, "call_id": call_id}


def decide(ana: User, answer: str) -> None:
    approval = Approval.objects.get()
    approvals.decide(approval.pk, by=ana, answer=answer, reason="so be it")
    perform(approval.call)


def limit(tool: str, **limits: int) -> None:
    rule = RuleSpec(name="a few", tools=(tool,), effect=Effect.ALLOW, limits=Limits(**limits))
    revisions.activate(revisions.new_draft(by=None, rules=[rule]), by=None)


def test_oxp_tells_of_a_missing_authorization_and_later_gives_the_result(post: Post, ana: User, tmp_path: Path) -> None:
    answer = post("/tools/call", {"request": fire(tmp_path / "ledger")})
    body = answer.json()
    assert (answer.status_code, body["code"], body["call_id"]) == (400, "approval_pending", "one")
    (where,) = body["missing_requirements"]["authorization"]
    assert where["id"] == "approval"
    assert where["url"].endswith(f"/approvals/{Approval.objects.get().pk}/")
    assert "check_url" in where
    assert answer.headers["Retry-After"] == "5"
    decide(ana, "approve")
    assert post("/tools/call", {"request": fire(tmp_path / "ledger")}).json()["result"]["value"] == 1


def test_oxp_tells_a_denial_with_its_reason(post: Post, ana: User, tmp_path: Path) -> None:
    post("/tools/call", {"request": fire(tmp_path / "ledger")})
    decide(ana, "deny")
    answer = post("/tools/call", {"request": fire(tmp_path / "ledger")})
    assert (answer.status_code, answer.json()["code"]) == (400, "approval_denied")
    assert "so be it" in answer.json()["message"]


def test_otc_tells_it_as_an_error_to_try_again_with_the_link_in_the_prompt(
    post: Post, ana: User, tmp_path: Path
) -> None:
    answer = post("/call", {"request": fire(tmp_path / "ledger")})
    error = answer.json()["output"]["error"]
    assert (answer.status_code, answer.json()["success"], error["can_retry"]) == (200, False, True)
    assert error["retry_after_ms"] > 0
    assert f"/approvals/{Approval.objects.get().pk}/" in error["additional_prompt_content"]
    decide(ana, "approve")
    assert post("/call", {"request": fire(tmp_path / "ledger")}).json()["output"] == {"value": 1}


def test_rest_answers_202_and_the_call_shows_its_approval(
    post: Post, ana: User, tmp_path: Path, client: Client
) -> None:
    asked = {"tool_id": "Lab.Fire", "input": {"ledger": str(tmp_path / "ledger")}}
    answer = post("/api/calls/", asked, **{"Idempotency-Key": "one"})
    body = answer.json()
    assert (answer.status_code, body["state"]) == (202, "awaiting_approval")
    assert answer.headers["Location"] == f"/api/calls/{body['id']}/"
    approval = Approval.objects.get()
    assert body["approval"]["id"] == str(approval.pk)
    assert body["approval"]["url"].endswith(f"/approvals/{approval.pk}/")
    assert (body["approval"]["state"], body["approval"]["quorum"]) == ("pending", 1)
    decide(ana, "approve")
    again = post("/api/calls/", asked, **{"Idempotency-Key": "one"})
    assert (again.status_code, again.json()["result"], again.json()["approval"]["state"]) == (200, 1, "consumed")


def test_a_limit_is_told_with_the_time_to_wait_and_the_same_call_may_come_again(post: Post) -> None:
    limit("Lab.Echo", per_minute=1)
    assert post("/tools/call", {"request": echo("one")}).status_code == 200
    assert post("/tools/call", {"request": echo("one")}).status_code == 200
    answer = post("/tools/call", {"request": echo("two")})
    assert (answer.status_code, answer.json()["code"]) == (400, "rate_limited")
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    native = post("/api/calls/", {"tool_id": "Lab.Echo", "input": {}})
    assert (native.status_code, native.json()["code"]) == (429, "rate_limited")
    assert 1 <= int(native.headers["Retry-After"]) <= 60
    assert Call.objects.count() == 1


def test_calls_at_once_are_counted_until_they_end(post: Post, tmp_path: Path) -> None:
    limit("Lab.Ring", at_once=1)
    asked = {"tool_id": "Lab.Ring", "input": {"ledger": str(tmp_path / "l")}}
    assert post("/api/calls/", asked, Prefer="wait=0").status_code == 202
    assert post("/api/calls/", asked, Prefer="wait=0").status_code == 429
    perform(Call.objects.get().pk)
    assert post("/api/calls/", asked, Prefer="wait=0").status_code == 202
