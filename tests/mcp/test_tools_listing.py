"""tools/list: what the caller may call, and nothing else, in the words of its revision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from registry.publishing import deprecate, withdraw
from tests.factories.registry import person
from tests.mcp.desk import DESK, ICON, RICH, SHAPE, VERSIONS, client_of, rpc
from tests.mcp.taskkit import LEGACY, MODERN, LegacyClient, ModernClient
from tests.protocols.toolkits import calculator, manifest

if TYPE_CHECKING:
    from policy.agents import NewAgent
    from tests.protocols.toolkits import Publish

pytestmark = pytest.mark.django_db
ALL = sorted(f"Desk_{tool['name']}" for tool in DESK["spec"]["tools"])


@pytest.fixture
def key(publish: Publish, robot: NewAgent) -> str:
    publish(DESK)
    return robot.key


def listed(client: ModernClient | LegacyClient, **params: Any) -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in client.send("tools/list", params).result["tools"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_each_revision_gets_the_same_tools_in_the_same_order_each_time(key: str, version: str) -> None:
    client = client_of(version, key)
    first, second = listed(client), listed(client)
    assert list(first) == list(second) == ALL
    for tool in first.values():
        assert tool["inputSchema"]["type"] == "object"
        assert tool["description"]


def test_only_tools_that_the_caller_may_call_are_there(publish: Publish, robot: NewAgent, stranger: NewAgent) -> None:
    from policy import agents

    publish(DESK)
    publish(calculator("1.0.0"))
    some = agents.create("some", actor="shell", call=["Calculator"])
    assert list(listed(ModernClient(some.key))) == ["Calculator_Add"]
    assert list(listed(ModernClient(stranger.key))) == []
    assert rpc(stranger.key, "tools/list") == {"result": {"tools": []}}
    assert "Calculator_Add" in listed(LegacyClient(robot.key))


def test_a_tool_that_a_rule_forbids_whatever_is_said_is_not_there(key: str) -> None:
    from policy import revisions
    from tests.policy.rules import rule

    draft = revisions.new_draft(by=None, rules=[rule("no echo", tools=["Desk.Echo"], effect="deny")])
    revisions.activate(draft, by=None)
    assert list(listed(ModernClient(key))) == [name for name in ALL if name != "Desk_Echo"]


def test_the_latest_published_version_is_described_and_a_deprecated_one_only_if_there_is_no_other(
    publish: Publish, robot: NewAgent
) -> None:
    client = ModernClient(robot.key)
    publish(calculator("1.0.0"))
    newer = publish(calculator("1.10.0", "c"))
    publish(calculator("1.9.0"))
    assert "c" in listed(client)["Calculator_Add"]["inputSchema"]["properties"]
    deprecate(newer, by=person(), reason="too many numbers")
    assert "c" not in listed(client)["Calculator_Add"]["inputSchema"]["properties"]
    publish(manifest("Old", "1.0.0", {"name": "Way"}))
    deprecate(publish(manifest("Old", "2.0.0", {"name": "Way"}, {"name": "Gone"})), by=person(), reason="old")
    assert {"Old_Way", "Old_Gone"} <= set(listed(client))


def test_every_keyword_of_a_schema_is_listed_as_it_was_published(key: str) -> None:
    assert listed(ModernClient(key))["Desk_Rich"]["inputSchema"] == RICH
    assert listed(LegacyClient(key))["Desk_Rich"]["inputSchema"] == RICH


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_model_must_not_fill_in_is_not_in_the_schema(key: str, version: str) -> None:
    schema = listed(client_of(version, key))["Desk_Transfer"]["inputSchema"]
    assert list(schema["properties"]) == schema["required"] == ["amount"]
    assert schema["additionalProperties"] is False


def test_output_schemas_are_objects_until_the_newest_revision_and_absent_before_there_were_any(key: str) -> None:
    modern, legacy = listed(ModernClient(key)), listed(LegacyClient(key))
    assert modern["Desk_Count"]["outputSchema"] == {"type": "number"}
    assert "outputSchema" not in legacy["Desk_Count"]
    assert modern["Desk_Report"]["outputSchema"] == legacy["Desk_Report"]["outputSchema"] == SHAPE
    assert "outputSchema" not in listed(LegacyClient(key, version="2025-03-26"))["Desk_Report"]
    for tool in ("Desk_Echo", "Desk_Quiet"):  # anything, and nothing: there is nothing to promise
        assert "outputSchema" not in modern[tool]


def test_titles_and_icons_are_told_where_the_revision_has_a_place_for_them(key: str) -> None:
    modern, oldest = (
        listed(ModernClient(key))["Desk_Count"],
        listed(LegacyClient(key, version="2025-03-26"))["Desk_Count"],
    )
    assert (modern["title"], modern["icons"]) == ("Count things", [ICON])
    assert listed(LegacyClient(key))["Desk_Count"]["icons"] == [ICON]
    assert "icons" not in listed(LegacyClient(key, version="2025-06-18"))["Desk_Count"]
    assert "title" not in oldest
    assert oldest["annotations"]["title"] == "Count things"


@pytest.mark.parametrize(
    ("tool", "hints"),
    [
        ({"idempotency": "read"}, (True, False, True, True)),
        ({"idempotency": "read", "capabilities": ["data.write"]}, (False, True, True, True)),
        ({"idempotency": "idempotent", "risk": "medium"}, (False, False, True, True)),
        ({"idempotency": "keyed", "capabilities": ["external.side_effect"]}, (False, True, False, True)),
        ({"annotations": {"destructiveHint": True, "openWorldHint": False}}, (False, True, False, False)),
        ({"idempotency": "read", "annotations": {"readOnlyHint": "yes"}}, (True, False, True, True)),
    ],
)
def test_hints_are_the_manifests_or_follow_from_risk_capabilities_and_idempotency(
    publish: Publish, robot: NewAgent, tool: dict[str, Any], hints: tuple[bool, ...]
) -> None:
    publish(manifest("One", "1.0.0", {"name": "Tool", **tool}))
    told = listed(ModernClient(robot.key))["One_Tool"]["annotations"]
    names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    assert tuple(told[name] for name in names) == hints


def test_one_revision_says_which_tools_can_be_tasks(key: str) -> None:
    tools = listed(LegacyClient(key))
    assert tools["Desk_Slow"]["execution"] == {"taskSupport": "optional"}
    assert "execution" not in tools["Desk_Echo"]
    for version in (MODERN, "2025-06-18"):
        assert all("execution" not in tool for tool in listed(client_of(version, key)).values())


def test_a_modern_list_may_be_kept_by_its_caller_for_a_while_and_by_nobody_else(key: str) -> None:
    result = ModernClient(key).send("tools/list").result
    assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
    assert type(result["ttlMs"]) is int
    assert result["ttlMs"] >= 0
    assert LegacyClient(key).send("tools/list").result.keys() == {"tools"}


def test_the_plain_dialect_has_its_three_fields(key: str) -> None:
    tools = {tool["name"]: tool for tool in rpc(key, "tools/list")["result"]["tools"]}
    assert list(tools) == ALL
    assert {frozenset(tool) for tool in tools.values()} == {frozenset({"name", "description", "inputSchema"})}
    assert list(tools["Desk_Transfer"]["inputSchema"]["properties"]) == ["amount"]


@pytest.fixture
def many(publish: Publish, robot: NewAgent) -> str:
    """Two hundred and fifty tools, which are three pages."""
    publish(manifest("Many", "1.0.0", *({"name": f"T{number:03}"} for number in range(250))))
    return robot.key


@pytest.mark.parametrize("version", [MODERN, LEGACY, ""])
def test_pages_follow_each_other_without_a_gap_or_a_double(many: str, version: str) -> None:
    def page(**params: Any) -> dict[str, Any]:
        if not version:
            return dict(rpc(many, "tools/list", params)["result"])
        return client_of(version, many).send("tools/list", params).result

    names, cursor, pages = [], page().get("nextCursor"), 1
    names += [tool["name"] for tool in page(cursor="")["tools"]]
    while cursor is not None:
        told = page(cursor=cursor)
        names += [tool["name"] for tool in told["tools"]]
        cursor, pages = told.get("nextCursor"), pages + 1
    assert names == [f"Many_T{number:03}" for number in range(250)]
    assert pages == 3


def test_a_place_is_kept_while_tools_come_and_go(many: str, publish: Publish) -> None:
    client = ModernClient(many)
    first = client.send("tools/list").result
    publish(manifest("Aaa", "1.0.0", {"name": "Before"}))
    publish(manifest("Zzz", "1.0.0", {"name": "After"}))
    second = client.send("tools/list", {"cursor": first["nextCursor"]}).result
    assert [tool["name"] for tool in second["tools"]] == [f"Many_T{number:03}" for number in range(100, 200)]
    from registry.models import ToolkitVersion

    withdraw(ToolkitVersion.objects.get(toolkit__name="Many"), by=person(), reason="all of it")
    third = client.send("tools/list", {"cursor": second["nextCursor"]}).result
    assert [tool["name"] for tool in third["tools"]] == ["Zzz_After"]


@pytest.mark.parametrize("cursor", ["x", "bm90aGluZw", "YWZ0ZXI6_w", 5, None, ["x"], "é", "A" * 500])
@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_a_cursor_that_is_not_ours_is_refused(key: str, version: str, cursor: Any) -> None:
    answer = client_of(version, key).send("tools/list", {"cursor": cursor})
    assert answer.code == -32602
    assert "cursor" in answer.error["message"]


def test_a_list_that_was_made_before_costs_a_look_at_the_revision(key: str) -> None:
    modern, legacy = ModernClient(key), LegacyClient(key)
    for client, least in ((modern, 1), (legacy, 2)):  # a session is looked up
        client.send("tools/list")
        with CaptureQueriesContext(connection) as queries:
            client.send("tools/list")
        assert len(queries) <= least, [query["sql"] for query in queries]


def test_permissions_given_and_taken_are_seen_in_the_next_list(publish: Publish, stranger: NewAgent) -> None:
    from guardian.shortcuts import assign_perm, remove_perm

    toolkit = publish(calculator("1.0.0")).toolkit
    client = ModernClient(stranger.key)
    assert list(listed(client)) == []
    assign_perm("registry.call_toolkit", stranger.agent.user, toolkit)
    assert list(listed(client)) == ["Calculator_Add"]
    remove_perm("registry.call_toolkit", stranger.agent.user, toolkit)
    assert list(listed(client)) == []
