"""The native door: make a call, follow it, cancel it, settle an unknown one."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from guardian.shortcuts import assign_perm
from rest_framework.test import APIClient

from execution import calls
from execution.models import Call, State
from execution.sweeping import sweep
from policy import agents
from policy.agents import NewAgent
from registry.clock import Later
from registry.models import ToolkitVersion
from registry.resolution import resolve
from registry.toolref import ToolRef

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(lab: ToolkitVersion) -> NewAgent:
    return agents.create("robot", actor="shell", call=["Lab"])


@pytest.fixture
def robot(made: NewAgent) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.key}")
    return client


def person(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


def post(client: APIClient, tool: str, key: str | None = None, wait: float | None = None, **arguments: Any) -> Any:
    headers: dict[str, Any] = {}
    if key is not None:
        headers["HTTP_IDEMPOTENCY_KEY"] = key
    if wait is not None:
        headers["HTTP_PREFER"] = f"wait={wait}"
    return client.post("/api/calls/", {"tool_id": f"Lab.{tool}", "input": arguments}, format="json", **headers)


def test_a_call_that_ends_in_time_is_200_with_its_result(robot: APIClient) -> None:
    answer = post(robot, "Echo", value=[1, {"a": None}])
    assert answer.status_code == 200
    body = answer.json()
    assert (body["state"], body["result"], body["agent"]) == ("succeeded", [1, {"a": None}], "robot")
    assert body["tool_id"] == "Lab.Echo@1.0.0"
    assert body["decision"]["effect"] == "allow"
    assert [attempt["status"] for attempt in body["attempts"]] == ["succeeded"]
    assert answer["Location"] == f"/api/calls/{body['id']}/"


def test_a_call_that_goes_on_is_202_with_where_to_follow_it(
    robot: APIClient, unsent: list[Any], tmp_path: Path
) -> None:
    answer = post(robot, "Ring", ledger=str(tmp_path / "ledger"))
    assert answer.status_code == 202
    followed = robot.get(answer["Location"])
    assert followed.json()["state"] == "queued"


def test_prefer_wait_holds_until_the_end(robot: APIClient, at_once: None, tmp_path: Path) -> None:
    answer = post(robot, "Ring", wait=5, ledger=str(tmp_path / "ledger"))
    assert (answer.status_code, answer.json()["result"]) == (200, 1)


def test_a_failing_tool_is_200_with_the_calls_error(robot: APIClient, at_once: None) -> None:
    answer = post(robot, "Fail", message="no luck")
    assert answer.status_code == 200
    assert (answer.json()["state"], answer.json()["error"]["message"]) == ("failed", "no luck")


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "code"),
    [
        ("Nothing", {}, 404, "unsupported_tool"),
        ("Slow", {"ledger": "/x", "seconds": "soon"}, 422, "invalid_input"),
        ("Needy", {}, 400, "missing_requirements"),
    ],
)
def test_a_refused_call_says_why_in_the_status(
    robot: APIClient, tool: str, arguments: dict[str, Any], status: int, code: str
) -> None:
    answer = post(robot, tool, **arguments)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert Call.objects.get(pk=answer.json()["details"]["call"]).error


def test_the_idempotency_key_is_the_call_id(robot: APIClient) -> None:
    first = post(robot, "Echo", key="k1", value=1)
    again = post(robot, "Echo", key="k1", value=1)
    other = post(robot, "Echo", key="k1", value=2)
    assert first.json()["call_id"] == "k1"
    assert again.json()["id"] == first.json()["id"]
    assert (other.status_code, other.json()["code"]) == (422, "call_id_reused")
    assert [error["path"] for error in other.json()["errors"]] == ["Idempotency-Key"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"tool_id": "Lab.Echo", "state": "succeeded"}, 422),
        ({"tool_id": "Lab.Echo", "context": {"secret": []}}, 422),
        ({"input": {}}, 422),
        ({"tool_id": "Lab.Echo", "input": []}, 422),
        ({"tool_id": 7, "input": {"a": "b"}, "fence": 9}, 422),
    ],
)
def test_a_body_of_another_shape_is_refused_and_nothing_is_written(
    robot: APIClient, body: dict[str, Any], status: int
) -> None:
    answer = robot.post("/api/calls/", body, format="json")
    assert answer.status_code == status
    assert answer.json()["message"]
    assert not Call.objects.exists()


@pytest.mark.parametrize("wait", ["-1", "soon", "nan", "inf"])
def test_an_unreadable_wait_is_refused(robot: APIClient, wait: str) -> None:
    call = post(robot, "Echo", value=1).json()
    assert robot.get(f"/api/calls/{call['id']}/?wait={wait}").status_code == 400


def test_calls_of_others_are_not_found(robot: APIClient, lab: ToolkitVersion, people: dict[str, User]) -> None:
    call = post(robot, "Echo", value=1).json()
    other = APIClient()
    other.credentials(HTTP_AUTHORIZATION=f"Bearer {agents.create('other', actor='shell', call=['Lab']).key}")
    missing = "01234567-89ab-7def-8123-456789abcdef"
    for client in (other, person(people["reviewer"])):
        hidden, unknown = client.get(f"/api/calls/{call['id']}/"), client.get(f"/api/calls/{missing}/")
        assert (hidden.status_code, hidden.json()) == (unknown.status_code, unknown.json()) == (404, unknown.json())
        assert client.post(f"/api/calls/{call['id']}/cancel/").status_code == 404
        assert client.get("/api/calls/").json()["count"] == 0


def test_a_person_who_audits_the_toolkit_sees_the_redacted_result(
    robot: APIClient, lab: ToolkitVersion, people: dict[str, User]
) -> None:
    call = post(robot, "Token").json()
    assert call["result"] == {"next_page_token": "page-2-of-the-list"}
    assign_perm("registry.audit_toolkit", people["reviewer"], lab.toolkit)
    seen = person(people["reviewer"]).get(f"/api/calls/{call['id']}/").json()
    assert "page-2-of-the-list" not in str(seen)
    assert robot.get(f"/api/calls/{call['id']}/").json()["result"] == call["result"]


def test_people_do_not_call(people: dict[str, User], lab: ToolkitVersion) -> None:
    answer = person(people["author"]).post("/api/calls/", {"tool_id": "Lab.Echo"}, format="json")
    assert answer.status_code == 403


def test_without_credentials_nothing_is_told(lab: ToolkitVersion) -> None:
    answer = APIClient().get("/api/calls/")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_queued_call_is_cancelled_at_once_and_an_ended_one_is_a_conflict(
    robot: APIClient, unsent: list[Any], tmp_path: Path
) -> None:
    call = post(robot, "Ring", ledger=str(tmp_path / "ledger")).json()
    cancelled = robot.post(f"/api/calls/{call['id']}/cancel/")
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert robot.post(f"/api/calls/{call['id']}/cancel/").status_code == 409


def test_a_running_call_is_asked_to_stop(robot: APIClient, unsent: list[Any], tmp_path: Path) -> None:
    call = post(robot, "Ring", ledger=str(tmp_path / "ledger")).json()
    claim(call["id"])
    asked = robot.post(f"/api/calls/{call['id']}/cancel/")
    assert (asked.status_code, asked.json()["cancel_requested"]) == (202, True)


def test_only_a_person_who_publishes_the_toolkit_settles_an_unknown_call(
    robot: APIClient, unsent: list[Any], tmp_path: Path, lab: ToolkitVersion, people: dict[str, User]
) -> None:
    call = post(robot, "Ring", ledger=str(tmp_path / "ledger")).json()
    claim(call["id"])
    Call.objects.filter(pk=call["id"]).update(lease_until=Later(-1))
    sweep()
    path, found = f"/api/calls/{call['id']}/settle/", {"outcome": "succeeded", "reason": "It is in the ledger"}
    assert robot.post(path, found, format="json").status_code == 403
    auditor = person(people["reviewer"])
    assign_perm("registry.audit_toolkit", people["reviewer"], lab.toolkit)
    assert auditor.post(path, found, format="json").status_code == 403
    assign_perm("registry.publish_toolkit", people["reviewer"], lab.toolkit)
    publisher = person(people["reviewer"])
    assert publisher.post(path, {"outcome": "succeeded"}, format="json").status_code == 422
    settled = publisher.post(path, found, format="json")
    assert (settled.status_code, settled.json()["state"]) == (200, "succeeded")
    assert publisher.post(path, found, format="json").status_code == 409


def test_lists_are_paged_filtered_searched_and_cost_the_same_for_any_length(
    robot: APIClient, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        post(robot, "Echo", key=f"key-{number}", value=number)
    post(robot, "Nothing")
    with django_assert_max_num_queries(8):
        page = robot.get("/api/calls/?page_size=5").json()
    assert (page["count"], len(page["results"])) == (13, 5)
    assert page["next"]
    assert robot.get("/api/calls/?state=rejected").json()["count"] == 1
    assert robot.get("/api/calls/?state=rejected&state=unknown").json()["count"] == 1  # of states one may want several
    assert robot.get("/api/calls/?search=key-7").json()["count"] == 1
    for tool_id, count in (("lab.echo", 12), ("Lab.Echo@1.0.0", 12), ("Lab.Ech", 0), ("Lab.Echo@1", 0), ("Lab", 0)):
        assert robot.get("/api/calls/", {"tool_id": tool_id}).json()["count"] == count, tool_id
    assert robot.get("/api/calls/?ordering=-tool_id").json()["results"][0]["tool_id"] == "Lab.Nothing"


@pytest.mark.parametrize(
    "query",
    [
        "state=nonsense",
        "tool=Lab.Echo",
        "ordering=nonsense",
        "ordering=tool_ref",
        "wait=1",
        "tool_id=Lab.Echo&tool_id=Lab.Ring",
        "since=0001-01-01T00:00:00%2B23:59",
        "until=9999-12-31T23:59:59-23:59",
    ],
)
def test_a_list_refuses_a_question_it_does_not_know(robot: APIClient, query: str) -> None:
    refused = robot.get(f"/api/calls/?{query}")
    assert refused.status_code == 400
    assert refused.json()["code"] == "bad_parameter"
    assert refused.json()["errors"][0]["path"] == query.partition("=")[0]


def claim(pk: str) -> None:
    call = Call.objects.get(pk=pk)
    ref = ToolRef.parse(call.tool_ref)
    assert ref is not None
    tool = resolve(ref)
    assert tool is not None
    assert calls.claim(call, tool, "robot")
    assert Call.objects.get(pk=pk).state == State.RUNNING
