"""tools/call: the same road as every door's calls, told in the words of each revision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import Event
from execution.models import Call, State
from execution.runtimes.base import RunResult
from tests.mcp.desk import VERSIONS, client_of, rpc
from tests.mcp.taskkit import LEGACY, MODERN, LegacyClient, ModernClient
from tests.protocols.toolkits import calculator
from tests.protocols.wire import post as send

if TYPE_CHECKING:
    from django.test import Client

    from policy.agents import NewAgent
    from tests.protocols.toolkits import Hands, Publish

pytestmark = pytest.mark.django_db
BOTH = [MODERN, LEGACY]
ARGUMENTS, CALL_ID = "placet.dev/arguments", "placet.dev/call_id"
TRACE = "0af7651916cd43dd8448eb211c80319c"


def gives(hands: Hands, tool: str, value: Any = None, content: tuple[dict[str, Any], ...] = ()) -> None:
    hands.overrides[f"Desk_{tool}"] = lambda invocation: RunResult(value=value, content=content)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_object_is_structured_content_and_a_text(key: str, hands: Hands, version: str) -> None:
    gives(hands, "Report", {"total": 5})
    result = client_of(version, key).call("Desk_Report", {}).result
    assert result["content"] == [{"type": "text", "text": '{"total":5}'}]
    assert result["isError"] is False
    assert result.get("structuredContent") == (None if version == "2025-03-26" else {"total": 5})
    assert result.get("resultType") == ("complete" if version == MODERN else None)


@pytest.mark.parametrize(
    ("value", "text"), [(5, "5"), (["a"], '["a"]'), (False, "false"), ("plain words", "plain words")]
)
def test_what_is_no_object_is_structured_only_where_the_revision_allows_any_value(
    key: str, hands: Hands, value: Any, text: str
) -> None:
    gives(hands, "Echo", value)
    modern, legacy = ModernClient(key).call("Desk_Echo", {}).result, LegacyClient(key).call("Desk_Echo", {}).result
    assert modern["structuredContent"] == value
    assert "structuredContent" not in legacy
    assert modern["content"] == legacy["content"] == [{"type": "text", "text": text}]


def test_nothing_is_an_answer_only_of_a_tool_that_declares_it(key: str) -> None:
    quiet, maybe = ModernClient(key).call("Desk_Quiet", {}).result, ModernClient(key).call("Desk_Maybe", {}).result
    assert quiet["content"] == []
    assert "structuredContent" not in quiet
    assert (maybe["content"][0]["text"], maybe["structuredContent"]) == ("null", None)


BLOCKS: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "look"},
    {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "https://tools.example/a", "name": "a", "mimeType": "text/plain"},
    {"type": "resource", "resource": {"uri": "test://a", "mimeType": "text/plain", "text": "words"}},
)


@pytest.mark.parametrize("version", VERSIONS)
def test_content_blocks_of_every_kind_arrive_as_the_tool_gave_them(key: str, hands: Hands, version: str) -> None:
    gives(hands, "Pieces", content=BLOCKS)
    result = client_of(version, key).call("Desk_Pieces", {}).result
    expected = list(BLOCKS)
    if version == "2025-03-26":  # which has no links yet
        expected[3] = {"type": "text", "text": "a: https://tools.example/a"}
    assert result["content"] == expected
    assert "structuredContent" not in result


@pytest.mark.parametrize("version", BOTH)
def test_arguments_may_be_left_out(key: str, version: str) -> None:
    answer = client_of(version, key).send("tools/call", {"name": "Desk_Quiet"})
    assert answer.result["isError"] is False


def test_the_plain_dialect_answers_as_document_003_writes(key: str, hands: Hands) -> None:
    gives(hands, "Report", {"total": 5})
    gives(hands, "Count", 8)
    gives(hands, "Pieces", content=BLOCKS)
    report = rpc(key, "tools/call", {"name": "Desk_Report", "arguments": {}})
    assert report == {
        "result": {"content": [{"type": "text", "text": '{"total":5}'}], "structuredContent": {"total": 5}}
    }
    count = rpc(key, "tools/call", {"name": "Desk_Count"})["result"]
    assert count == {"content": [{"type": "text", "text": '{"result":8}'}], "structuredContent": {"result": 8}}
    assert rpc(key, "tools/call", {"name": "Desk_Pieces"}) == {"result": {"content": list(BLOCKS)}}
    assert {call.door for call in Call.objects.all()} == {"rpc"}


@pytest.mark.parametrize("version", BOTH)
def test_a_call_leaves_the_row_and_the_trail_that_every_doors_call_leaves(
    client: Client, key: str, robot: NewAgent, version: str
) -> None:
    result = client_of(version, key).call("Desk_Echo", {"value": 1}).result
    body = {"$schema": "urn:oxp:1.0", "request": {"tool_id": "Desk.Echo", "input": {"value": 1}}}
    assert send(client, "/tools/call", body, robot).status_code == 200
    ours, other = Call.objects.order_by("id")
    assert (ours.door, ours.state, ours.call_id) == ("mcp", State.SUCCEEDED, result["_meta"][CALL_ID])
    names = [
        list(Event.objects.filter(subject_id=str(call.pk)).order_by("seq").values_list("event", flat=True))
        for call in (ours, other)
    ]
    assert names[0] == names[1]
    assert (ours.arguments_digest, ours.input, ours.result) == (other.arguments_digest, other.input, other.result)


@pytest.mark.parametrize("version", BOTH)
def test_a_call_id_makes_a_call_happen_once(key: str, version: str, hands: Hands) -> None:
    client = client_of(version, key)
    first = client.call("Desk_Echo", {"value": 1}, _meta={CALL_ID: "once"})
    again = client.call("Desk_Echo", {"value": 1}, _meta={CALL_ID: "once"})
    other = client.call("Desk_Echo", {"value": 2}, _meta={CALL_ID: "once"})
    assert first.result == again.result
    assert len(hands.runs) == 1
    assert other.code == -32602
    assert other.error["data"]["code"] == "call_id_reused"


@pytest.mark.parametrize("version", BOTH)
def test_the_trace_of_the_client_is_the_trace_of_the_call(key: str, version: str, hands: Hands) -> None:
    meta = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "tracestate": "vendor=1", "baggage": "a=b"}
    client_of(version, key).call("Desk_Echo", {}, _meta=meta)
    assert Call.objects.get().trace_id == TRACE
    assert hands.runs[0].traceparent.startswith(f"00-{TRACE}-")


@pytest.mark.parametrize(
    "given", ["", "nonsense", f"00-{'0' * 32}-b7ad6b7169203331-01", f"ff-{TRACE}-b7ad6b7169203331-01", 5, {"a": 1}]
)
def test_a_trace_that_is_malformed_is_none(key: str, given: Any) -> None:
    assert ModernClient(key).call("Desk_Echo", {}, _meta={"traceparent": given}).result["isError"] is False
    assert Call.objects.get().trace_id == ""


def test_what_a_tool_needs_besides_its_input_is_brought_in_meta(key: str, hands: Hands) -> None:
    client = ModernClient(key)
    missing = client.call("Mail_Send", {"to": "a"})
    assert missing.result["isError"] is True
    assert 'brings it in _meta["placet.dev/context"]' in missing.text
    context = {
        "authorization": [{"id": "google", "token": "t0ken-of-mine"}],
        "secrets": [{"id": "SMTP_KEY", "value": "s3cret-of-mine"}],
        "user_id": "ana",
    }
    hands.overrides["Mail_Send"] = lambda invocation: RunResult(value={"said": invocation.secrets["SMTP_KEY"]})
    answer = client.call("Mail_Send", {"to": "a"}, _meta={"placet.dev/context": context})
    assert answer.result["isError"] is False
    assert "s3cret-of-mine" not in str(answer.body)
    assert hands.runs[0].user_id == "ana"


def test_a_call_asks_the_database_no_more_than_one_of_another_door(client: Client, key: str, robot: NewAgent) -> None:
    modern, legacy = ModernClient(key), LegacyClient(key)
    body = {"$schema": "urn:oxp:1.0", "request": {"tool_id": "Desk.Echo", "input": {"value": 1}}}

    def other() -> None:
        assert send(client, "/tools/call", body, robot).status_code == 200

    counts = []
    for ask in (other, lambda: modern.call("Desk_Echo", {"value": 1}), lambda: legacy.call("Desk_Echo", {"value": 1})):
        ask()
        with CaptureQueriesContext(connection) as queries:
            ask()
        counts.append(len(queries))
    assert counts[1] <= counts[0], counts
    assert counts[2] <= counts[0] + 1, counts  # whose session it is


def test_the_newest_version_is_called_under_the_flat_name(key: str, publish: Publish, hands: Hands) -> None:
    publish(calculator("1.2.0", "c"))
    ModernClient(key).call("Calculator_Add", {"a": 1, "b": 2, "c": 3})
    assert hands.runs[-1].tool.version == "1.2.0"
