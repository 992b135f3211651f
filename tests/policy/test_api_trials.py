"""Policy tried over REST: questions are answered, replays are followed, a shadow's differences are listed."""

from typing import Any
from uuid import uuid4

import pytest
from guardian.shortcuts import assign_perm
from rest_framework.test import APIClient

from audit.models import Event
from config.celery import app
from execution.models import Call
from policy import agents, replays
from policy.models import Difference, Meter, Replay
from registry.models import Toolkit
from tests.factories.registry import published
from tests.policy.stage import SMALL, Stage, draft, live, stage

pytestmark = pytest.mark.django_db

REVISIONS = "/api/policy/revisions/"
EVALUATE = "/api/policy/evaluate/"
REPLAY = "/api/policy/replay/"
DENY = {"name": "no payouts", "tools": ["Payments.Payout"], "effect": "deny"}


@pytest.fixture
def here() -> Stage:
    return stage()


@pytest.fixture
def api(here: Stage) -> APIClient:
    return here.api("editor")


def post(client: APIClient, path: str, body: Any = None, **headers: Any) -> Any:
    return client.post(path, body, format="json", headers=headers)


# Questions


def question(**more: Any) -> dict[str, Any]:
    return {"agent": "support-bot", "tool_id": "Payments.Refund", "input": {"amount": 5.0}, **more}


def test_a_question_is_answered_with_everything_that_led_to_the_answer(api: APIClient) -> None:
    number = live(SMALL | {"limits": {"perMinute": 3}}).number
    told = post(api, EVALUATE, question()).json()
    assert (told["effect"], told["rule"], told["revision"]) == ("allow", SMALL["name"], number)
    assert [check["check"] for check in told["checks"]] == ["permission", SMALL["name"]]
    assert told["limits"] == {"per_minute": 3, "per_day": None, "at_once": None}
    asked = post(api, EVALUATE, question(input={"amount": 500.0})).json()
    assert (asked["effect"], asked["rule"], asked["ask"]["quorum"]) == ("ask", "default", 1)
    assert asked["help"]


def test_a_question_leaves_no_trace_and_counts_no_limit(api: APIClient) -> None:
    live(SMALL | {"limits": {"perMinute": 1}})
    before = Event.objects.count()
    for _ in range(3):
        assert post(api, EVALUATE, question()).json()["effect"] == "allow"
    assert (Call.objects.count(), Meter.objects.count(), Event.objects.count()) == (0, 0, before)


def test_another_revision_is_asked_by_its_number_and_the_defaults_by_0(api: APIClient) -> None:
    live(SMALL)
    other = draft({"name": "no", "effect": "deny"})
    assert post(api, EVALUATE, question(revision=other.number)).json()["rule"] == "no"
    assert post(api, EVALUATE, question(revision=0)).json()["rule"] == "default"
    api.put(f"{REVISIONS}{other.number}/", {"rules": []}, format="json")
    assert post(api, EVALUATE, question(revision=other.number)).json()["rule"] == "default"


def test_the_context_reaches_the_condition(api: APIClient) -> None:
    live({"name": "not for eve", "when": "context.user_id == 'eve'", "effect": "deny"})
    assert post(api, EVALUATE, question(context={"user_id": "eve"})).json()["rule"] == "not for eve"
    assert post(api, EVALUATE, question()).json()["rule"] == "default"


def test_a_grant_in_force_answers_where_the_live_rules_would_ask_and_is_not_used_up(
    here: Stage, api: APIClient
) -> None:
    grant = here.granted(uses=1, when="input.amount <= 600.0")
    for _ in range(2):
        told = post(api, EVALUATE, question(input={"amount": 500.0})).json()
        assert (told["effect"], told["rule"]) == ("allow", f"grant {grant.pk}")
        assert [check["check"] for check in told["checks"]] == ["permission", "default", f"grant {grant.pk}"]
    assert post(api, EVALUATE, question(input={"amount": 700.0})).json()["effect"] == "ask"
    assert post(api, EVALUATE, question(input={"amount": 500.0}, revision=0)).json()["effect"] == "ask"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"agent": "nobody"}, "There is no agent 'nobody'."),
        ({"tool_id": "Payments.Nothing"}, "There is no tool 'Payments.Nothing' that can be called."),
        ({"tool_id": "???"}, "There is no tool '???' that can be called."),
        ({"revision": 99}, "There is no policy revision 99."),
    ],
)
def test_what_does_not_exist_is_named(api: APIClient, more: dict[str, Any], sentence: str) -> None:
    answer = post(api, EVALUATE, question(**more))
    assert (answer.status_code, answer.json()["message"]) == (404, sentence)


def test_input_that_does_not_fit_is_refused_by_parameter(api: APIClient) -> None:
    answer = post(api, EVALUATE, question(input={"amount": "5"}))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "input.amount"
    missing = post(api, EVALUATE, {"tool_id": "Payments.Refund", "input": {"amount": 5.0}})
    assert (missing.status_code, missing.json()["errors"][0]["path"]) == (422, "agent")
    assert post(api, EVALUATE, question(context={"secrets": []})).status_code == 422


def test_an_agent_s_key_asks_about_itself_only(here: Stage) -> None:
    live(SMALL)
    agents.create("other-bot", actor="shell")
    client = here.api("agent")
    without = question()
    del without["agent"]
    assert post(client, EVALUATE, without).json()["effect"] == "allow"
    assert post(client, EVALUATE, question()).json()["effect"] == "allow"
    others = [post(client, EVALUATE, question(agent=name)) for name in ("other-bot", "nobody")]
    assert [answer.status_code for answer in others] == [403, 403]
    assert others[0].content == others[1].content
    assert post(client, EVALUATE, question(revision=0)).status_code == 403


def test_an_agent_does_not_learn_of_tools_that_it_may_not_see(here: Stage) -> None:
    published("Secret", "1.0.0")
    client = here.api("agent")
    hidden = post(client, EVALUATE, {"tool_id": "Secret.Add", "input": {"a": 1, "b": 2}})
    unknown = post(client, EVALUATE, {"tool_id": "Nothing.Add", "input": {"a": 1, "b": 2}})
    assert (hidden.status_code, unknown.status_code) == (404, 404)
    assert hidden.json()["message"].replace("Secret", "Nothing") == unknown.json()["message"]


def test_auditors_may_ask_about_any_agent_and_strangers_may_not(here: Stage) -> None:
    assert post(here.api("auditor"), EVALUATE, question()).status_code == 200
    assert post(here.api("stranger"), EVALUATE, question()).status_code == 403
    assert post(here.api("viewer"), EVALUATE, question()).status_code == 403
    assert post(here.api("anonymous"), EVALUATE, question()).status_code == 401
    assign_perm("registry.audit_toolkit", here.stranger, Toolkit.objects.get(name="Payments"))
    assert post(here.api("stranger"), EVALUATE, question()).status_code == 200
    published("Mail", "1.0.0")
    other = question(tool_id="Mail.Add", input={"a": 1, "b": 2})
    assert post(here.api("stranger"), EVALUATE, other).status_code == 403


def test_an_agent_that_is_shut_out_is_denied_whatever_the_rules_say(here: Stage, api: APIClient) -> None:
    live(SMALL)
    agents.set_active(here.agent.agent, False, actor="shell")
    told = post(api, EVALUATE, question()).json()
    assert (told["effect"], told["rule"]) == ("deny", "agent")


# Replays


def test_a_replay_that_ends_in_time_is_answered_with_its_result(
    here: Stage, api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = here.called(here.refund, {"amount": 5.0}, "ask")
    monkeypatch.setattr(replays, "wait_for", lambda id, patience: _worked_off(id))
    answer = post(api, REPLAY, {"revision": draft(SMALL).number, "last": 10})
    assert answer.status_code == 200
    told = answer.json()
    assert told["evaluated"] == 1
    assert [entry["call"] for entry in told["newly_allowed"]] == [str(call)]
    assert (told["newly_denied"], told["newly_asked"], told["undecidable"]) == ([], [], [])
    assert told["summary"]["tools"][0]["tool_id"] == "Payments.Refund@1.0.0"
    assert api.get(answer["Location"]).json() == told


def _worked_off(id: Any) -> Replay:
    replays.work_off(id)
    return Replay.objects.get(pk=id)


def test_a_replay_that_takes_longer_is_followed_at_its_own_address(api: APIClient) -> None:
    answer = post(api, REPLAY, {"revision": 0, "last": 10}, Prefer="wait=0")
    assert answer.status_code == 202
    assert {key: answer.json()[key] for key in ("state", "evaluated", "total")} == {
        "state": "waiting",
        "evaluated": 0,
        "total": 0,
    }
    assert api.get(answer["Location"]).json()["state"] == "waiting"
    replays.work_off(Replay.objects.get().pk)
    assert api.get(answer["Location"]).json()["state"] == "done"
    assert [row["state"] for row in api.get("/api/policy/replays/").json()["results"]] == ["done"]


@pytest.mark.django_db(transaction=True)
def test_the_answer_waits_for_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    here = stage()
    monkeypatch.setitem(app.conf, "task_always_eager", True)
    here.called(here.refund, {"amount": 5.0}, "ask")
    answer = post(here.api("editor"), REPLAY, {"revision": draft(SMALL).number, "last": 10})
    assert (answer.status_code, answer.json()["summary"]["newly_allowed"]) == (200, 1)


def test_a_replay_that_failed_says_so(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(replays, "replayed", broken)
    monkeypatch.setattr(replays, "wait_for", lambda id, patience: _worked_off(id))
    answer = post(api, REPLAY, {"revision": 0, "last": 10})
    assert (answer.status_code, answer.json()["code"]) == (500, "replay_failed")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"revision": 0}, "last"),
        ({"revision": 0, "last": 0}, "last"),
        ({"revision": 0, "last": 100_001}, "last"),
        ({"last": 1}, "revision"),
        ({"revision": -1, "last": 1}, "revision"),
        ({"revision": 0, "last": 1, "first": 1}, "first"),
    ],
)
def test_a_replay_is_bounded_and_its_body_strict(api: APIClient, body: Any, path: str) -> None:
    answer = post(api, REPLAY, body)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, path)
    assert not Replay.objects.exists()


def test_a_replay_of_nothing_or_one_too_many_is_refused(api: APIClient) -> None:
    assert post(api, REPLAY, {"revision": 99, "last": 1}).status_code == 404
    assert api.get(f"/api/policy/replays/{uuid4()}/").status_code == 404
    for _ in range(replays.MAX_OPEN):
        post(api, REPLAY, {"revision": 0, "last": 1}, Prefer="wait=0")
    assert post(api, REPLAY, {"revision": 0, "last": 1}, Prefer="wait=0").status_code == 409
    assert post(api, REPLAY, {"revision": 0, "last": 1}, Prefer="wait=x").status_code == 400


def test_replays_are_for_who_writes_policy_or_audits_everything(here: Stage) -> None:
    assign_perm("policy.edit_policy", here.agent.agent.user)
    for role, status in {"auditor": 202, "viewer": 403, "stranger": 403, "agent": 403, "anonymous": 401}.items():
        assert post(here.api(role), REPLAY, {"revision": 0, "last": 1}, Prefer="wait=0").status_code == status, role
        assert here.api(role).get("/api/policy/replays/").status_code == (200 if status == 202 else status), role


# Differences


def differ(here: Stage, shadow: int, turn: tuple[str, str], tool: str = "Payments.Refund@1.0.0") -> Difference:
    return Difference.objects.create(
        call=uuid4(),
        agent=here.agent.agent,
        tool_ref=tool,
        live_revision=1,
        live_effect=turn[0],
        live_rule="a",
        shadow_revision=shadow,
        shadow_effect=turn[1],
        shadow_rule="b",
        shadow_reason="Rule 'b' said so",
    )


def test_the_differences_of_a_shadow_are_listed_narrowed_and_counted(here: Stage) -> None:
    number = draft(SMALL).number
    first = differ(here, number, ("allow", "deny"))
    second = differ(here, number, ("ask", "allow"), "Payments.Payout@1.0.0")
    differ(here, number + 1, ("allow", "deny"))
    client, path = here.api("viewer"), f"{REVISIONS}{number}/differences/"
    every = client.get(path).json()
    assert [row["call"] for row in every["results"]] == [str(second.call), str(first.call)]
    assert every["results"][1]["tool_id"] == "Payments.Refund@1.0.0"
    assert [row["id"] for row in client.get(path, {"shadow_effect": "deny"}).json()["results"]] == [first.pk]
    assert client.get(path, {"agent": "nobody"}).json()["count"] == 0
    for asked in ({"effect": "deny"}, {"since": "0001-01-01T00:00:00+23:59"}):
        assert client.get(path, asked).status_code == 400
    counts = client.get(f"{path}counts/").json()
    assert counts["total"] == 2
    assert {(row["live_effect"], row["shadow_effect"], row["count"]) for row in counts["effects"]} == {
        ("allow", "deny", 1),
        ("ask", "allow", 1),
    }
    assert counts["agents"] == [{"agent": "support-bot", "count": 2}]
    assert client.get(f"{path}counts/", {"live_effect": "ask"}).json()["total"] == 1
