"""tools/call: the same road as every door's calls, told in the words of each revision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import Event
from execution.errors import CallError, ErrorCode
from execution.models import Call, State
from execution.runtimes.base import Invocation, RunResult
from policy import revisions
from tests.mcp.desk import DESK, VERSIONS, client_of, modern_call, rpc
from tests.mcp.taskkit import LEGACY, MODERN, LegacyClient, ModernClient
from tests.policy.rules import rule
from tests.protocols.toolkits import MAIL, calculator
from tests.protocols.wire import post as send

if TYPE_CHECKING:
    from django.test import Client

    from policy.agents import NewAgent
    from tests.protocols.toolkits import Hands, Publish

pytestmark = pytest.mark.django_db
BOTH = [MODERN, LEGACY]
ARGUMENTS, CALL_ID = "placet.dev/arguments", "placet.dev/call_id"
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def key(publish: Publish, robot: NewAgent, hands: Hands) -> str:
    """Of an agent that may call the desk, whose tools give back what they were given."""
    publish(DESK)
    for name in ("Echo", "Transfer", "Route", "Slow"):
        hands.overrides[f"Desk_{name}"] = lambda invocation: RunResult(value=dict(invocation.arguments))
    return robot.key


def gives(hands: Hands, tool: str, value: Any = None, content: tuple[dict[str, Any], ...] = ()) -> None:
    hands.overrides[f"Desk_{tool}"] = lambda invocation: RunResult(value=value, content=content)


# What a tool returned


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


# What a caller did wrong


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_tool_is_an_error_of_the_protocol_with_near_names(key: str, version: str) -> None:
    answer = client_of(version, key).call("Desk_Ecko", {})
    assert answer.code == -32602
    assert answer.error["message"] == "Unknown tool: Desk_Ecko; did you mean Desk_Echo?"
    assert answer.error["data"]["suggestions"] == ["Desk_Echo"]
    assert Call.objects.get().state == State.REJECTED


def test_in_the_plain_dialect_an_unknown_tool_is_an_unknown_method(key: str) -> None:
    error = rpc(key, "tools/call", {"name": "Desk_Ecko"})["error"]
    assert (error["code"], error["message"]) == (-32601, "Method not found")
    assert error["data"]["detail"] == "Tool 'Desk_Ecko' was not found; did you mean Desk_Echo?"
    assert "did you mean" not in rpc(key, "tools/call", {"name": "Something"})["error"]["data"]["detail"]


@pytest.mark.parametrize("name", ["desk_echo", "Desk.Echo", "Desk.Echo@1.0.0", "DESK_ECHO"])
def test_a_tool_has_one_spelling_here(key: str, name: str, hands: Hands) -> None:
    answer = ModernClient(key).call(name, {})
    assert answer.code == -32602
    if "@" not in name:
        assert answer.error["data"]["suggestions"] == ["Desk_Echo"]
    assert hands.runs == []


def test_names_of_tools_that_the_caller_cannot_see_are_never_suggested(key: str, stranger: NewAgent) -> None:
    for answer in (ModernClient(stranger.key).call("Desk_Echo", {}), ModernClient(stranger.key).call("Desk_Ecko", {})):
        assert answer.code == -32602
        assert answer.error["data"]["suggestions"] == []
    known, unknown = (ModernClient(stranger.key).call(name, {}).error for name in ("Desk_Echo", "Nada_Tool"))
    assert known["message"].replace("Desk_Echo", "X") == unknown["message"].replace("Nada_Tool", "X")


@pytest.mark.parametrize("version", BOTH)
def test_wrong_arguments_are_a_tools_error_that_a_model_can_correct(key: str, version: str, hands: Hands) -> None:
    answer = client_of(version, key).call("Desk_Transfer", {"amount": "much"}, _meta={ARGUMENTS: {"account": "1"}})
    assert answer.result["isError"] is True
    assert answer.text.splitlines() == [
        "Some input parameters are invalid",
        "- amount: Must be a number",
        'An example of arguments that it takes: {"amount":1}',
    ]
    error = answer.result["_meta"]["placet.dev/error"]
    assert (error["code"], error["example"]) == ("invalid_input", {"amount": 1})
    assert error["parameter_errors"] == {"amount": "Must be a number"}
    assert hands.runs == []
    assert Call.objects.get().state == State.REJECTED


@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26"])
def test_older_revisions_take_wrong_arguments_for_an_error_of_the_protocol(key: str, version: str) -> None:
    answer = client_of(version, key).call("Desk_Transfer", {}, _meta={ARGUMENTS: {"account": "1"}})
    assert answer.code == -32602
    assert answer.error["message"] == "Invalid params: Parameter 'amount' is required"
    assert answer.error["data"]["example"] == {"amount": 1}


def test_the_plain_dialect_names_the_parameter(key: str) -> None:
    error = rpc(key, "tools/call", {"name": "Desk_Transfer", "arguments": {"amount": 3}})["error"]
    assert (error["code"], error["message"]) == (-32602, "Invalid params")
    assert error["data"]["detail"] == "Parameter 'account' is required"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": ""},
        {"name": "x" * 300},
        {"name": "Desk_Echo", "arguments": []},
        {"name": "Desk_Echo", "arguments": None},
        {"name": "Desk_Echo", "_meta": {ARGUMENTS: 5}},
        {"name": "Desk_Echo", "_meta": {CALL_ID: ""}},
        {"name": "Desk_Echo", "_meta": {CALL_ID: "a\nb"}},
        {"name": "Desk_Echo", "_meta": {"progressToken": 1.5}},
        {"name": "Desk_Echo", "_meta": {"progressToken": True}},
        {"name": "Desk_Echo", "_meta": {"placet.dev/context": {"secrets": "x"}}},
    ],
)
@pytest.mark.parametrize("version", BOTH)
def test_a_request_of_the_wrong_shape_is_refused_and_leaves_no_call(
    key: str, version: str, params: dict[str, Any]
) -> None:
    answer = client_of(version, key).send("tools/call", params)
    assert answer.code == -32602
    assert answer.error["message"].startswith("Invalid params: ")
    assert Call.objects.count() == 0


def test_a_name_that_is_no_text_is_refused(key: str) -> None:
    assert LegacyClient(key).send("tools/call", {"name": 5}).error["message"] == "Invalid params: name must be a string"
    assert rpc(key, "tools/call", {"name": 5})["error"]["data"] == {"detail": "name must be a string"}


# What a model must not infer


@pytest.mark.parametrize("version", BOTH)
def test_a_parameter_that_is_not_for_models_comes_from_the_program(key: str, version: str) -> None:
    answer = client_of(version, key).call("Desk_Transfer", {"amount": 3}, _meta={ARGUMENTS: {"account": "mine"}})
    assert answer.result["structuredContent"] == {"amount": 3, "account": "mine"}


@pytest.mark.parametrize("version", BOTH)
def test_a_model_that_fills_it_in_is_told_that_it_must_not(key: str, version: str, hands: Hands) -> None:
    answer = client_of(version, key).call("Desk_Transfer", {"amount": 3, "account": "theirs"})
    assert answer.result["isError"] is True
    assert "- account: Is not for a model to fill in" in answer.text
    assert hands.runs == []
    assert Call.objects.get().state == State.REJECTED


def test_what_model_and_program_both_give_is_refused_whatever_they_say(key: str, hands: Hands) -> None:
    meta = {ARGUMENTS: {"account": "mine", "amount": 3}}
    answer = ModernClient(key).call("Desk_Transfer", {"amount": 3}, _meta=meta)
    assert answer.result["isError"] is True
    assert "- amount: Was given twice" in answer.text
    plain = rpc(key, "tools/call", {"name": "Desk_Transfer", "arguments": {"amount": 3}, "_meta": meta})
    assert plain["error"]["data"]["detail"] == "Parameter 'amount' was given twice, by model and by program"
    assert hands.runs == []


def test_a_refused_call_can_come_again_from_the_right_hand_under_the_same_id(key: str) -> None:
    client = ModernClient(key)
    wrong = client.call("Desk_Transfer", {"amount": 3, "account": "a"}, _meta={CALL_ID: "one"})
    right = client.call("Desk_Transfer", {"amount": 3}, _meta={CALL_ID: "one", ARGUMENTS: {"account": "a"}})
    assert wrong.result["isError"] is True
    assert right.code == -32602  # the id belongs to the refused one, which was another request
    assert right.error["data"]["code"] == "call_id_reused"


# The same call again, traces, and what the caller brings


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
    assert MAIL  # the tool with the needs


# What did not work out


@pytest.mark.parametrize("version", VERSIONS)
def test_a_tools_failure_is_a_result_with_what_helps(key: str, version: str) -> None:
    answer = client_of(version, key).call("Doorbell_Ring", {"doorbell_id": "nobody"})
    assert answer.result["isError"] is True
    assert answer.text.splitlines() == [
        "Doorbell ID not found",
        "ids: doorbell42,doorbell84",
        "It can be called again in 1 second.",
    ]
    assert "does not exist" not in answer.text  # that is for developers
    assert "does not exist" in answer.result["_meta"]["placet.dev/error"]["developer_message"]


def test_in_the_plain_dialect_a_tools_failure_is_an_internal_error(key: str) -> None:
    error = rpc(key, "tools/call", {"name": "Doorbell_Ring", "arguments": {"doorbell_id": "nobody"}})["error"]
    assert (error["code"], error["message"]) == (-32603, "Internal error")
    assert error["data"]["detail"].startswith("Doorbell ID not found")
    assert error["data"]["code"] == "execution_failed"


@pytest.mark.parametrize("version", BOTH)
def test_a_denied_call_says_why_and_what_would_help(key: str, version: str, hands: Hands) -> None:
    no = rule("no big ones", tools=["Desk.Transfer"], when="input.amount > 100.0", effect="deny")
    revisions.activate(revisions.new_draft(by=None, rules=[no]), by=None)
    answer = client_of(version, key).call("Desk_Transfer", {"amount": 101}, _meta={ARGUMENTS: {"account": "a"}})
    assert answer.result["isError"] is True
    assert "no big ones" in answer.text
    assert answer.result["_meta"]["placet.dev/error"]["code"] == "permission_denied"
    assert hands.runs == []
    assert Call.objects.get().state == State.DENIED


@pytest.mark.parametrize("version", BOTH)
def test_a_call_over_the_limit_says_when_to_come_again(key: str, version: str) -> None:
    few = rule("a few", tools=["Desk.*"], limits={"perMinute": 1})
    revisions.activate(revisions.new_draft(by=None, rules=[few]), by=None)
    client = client_of(version, key)
    assert client.call("Desk_Echo", {}).result["isError"] is False
    limited = client.call("Desk_Echo", {})
    assert limited.result["isError"] is True
    assert "It can be called again in " in limited.text
    assert limited.result["_meta"]["placet.dev/error"]["code"] == "rate_limited"


@pytest.mark.parametrize("version", BOTH)
def test_a_fault_of_ours_is_an_error_of_the_protocol(key: str, version: str, hands: Hands) -> None:
    def fails(invocation: Invocation) -> RunResult:
        raise CallError(ErrorCode.INTERNAL, "Placet failed to run the call")

    hands.overrides["Desk_Echo"] = fails
    answer = client_of(version, key).call("Desk_Echo", {})
    assert answer.code == -32603
    assert answer.error["message"] == "Internal error: Placet failed to run the call"


def test_a_deprecated_version_warns(key: str, publish: Publish, hands: Hands) -> None:
    from registry.models import ToolkitVersion
    from registry.publishing import deprecate

    deprecate(ToolkitVersion.objects.get(toolkit__name="Desk"), by=None, reason="old")
    warned = ModernClient(key).call("Desk_Echo", {}).result["_meta"]["placet.dev/warnings"]
    assert warned == ["Desk.Echo@1.0.0 is deprecated; move to a newer version"]


def test_in_the_plain_dialect_a_call_that_waits_for_a_person_is_an_error_with_the_link(key: str, hands: Hands) -> None:
    ask = rule("people first", tools=["Desk.Echo"], effect="ask")
    revisions.activate(revisions.new_draft(by=None, rules=[ask]), by=None)
    error = rpc(key, "tools/call", {"name": "Desk_Echo"})["error"]
    call = Call.objects.get()
    assert (error["code"], error["data"]["code"]) == (-32603, "approval_pending")
    assert f"/approvals/{call.approval_id}/" in error["data"]["detail"]
    assert error["data"]["call_id"] == call.call_id
    again = {"name": "Desk_Echo", "_meta": {CALL_ID: call.call_id}}
    assert rpc(key, "tools/call", again)["error"]["data"]["code"] == "approval_pending"
    assert Call.objects.count() == 1
    assert hands.runs == []


# Headers that repeat arguments


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": None}, {}),
        ({"region": "eu"}, {"Mcp-Param-Region": "eu"}),
        ({"region": "eu"}, {"MCP-PARAM-REGION": " eu "}),
        ({"region": "zürich"}, {"Mcp-Param-Region": "=?base64?esO8cmljaA==?="}),
        ({"region": ""}, {"Mcp-Param-Region": ""}),
        ({"shelf": 42}, {"Mcp-Param-Shelf-Number": "42"}),
        ({"shelf": 42}, {"Mcp-Param-Shelf-Number": "42.0"}),
        ({"shelf": 9007199254740993}, {"Mcp-Param-Shelf-Number": "9007199254740993"}),
        ({"is_far": True, "region": "a"}, {"Mcp-Param-Far": "true", "Mcp-Param-Region": "a"}),
    ],
)
def test_arguments_that_are_repeated_in_headers_pass(
    key: str, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    arguments = {name: value for name, value in arguments.items() if value is not None}
    answer = modern_call(key, "Desk_Route", arguments, headers=headers)
    assert answer.status_code == 200, answer.content
    assert answer.json()["result"]["structuredContent"] == arguments


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {"Mcp-Param-Region": "us"}),
        ({"region": "eu"}, {"Mcp-Param-Region": "EU"}),
        ({"region": "eu"}, {"Mcp-Param-Region": "=?base64?!!?="}),
        ({}, {"Mcp-Param-Region": "eu"}),
        ({"shelf": 42}, {"Mcp-Param-Shelf-Number": "43"}),
        ({"shelf": 42}, {"Mcp-Param-Shelf-Number": "0x2a"}),
        ({"shelf": 9007199254740993}, {"Mcp-Param-Shelf-Number": "9007199254740992"}),
        ({"is_far": True}, {"Mcp-Param-Far": "True"}),
        ({"is_far": True}, {"Mcp-Param-Far": "1"}),
    ],
)
def test_a_header_that_says_something_else_stops_the_call(
    key: str, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    answer = modern_call(key, "Desk_Route", arguments, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
    assert "Mcp-Param-" in answer.json()["error"]["message"]
    assert Call.objects.count() == 0


def test_older_clients_need_no_such_headers(key: str) -> None:
    assert LegacyClient(key).call("Desk_Route", {"region": "eu"}).result["structuredContent"] == {"region": "eu"}


# What it costs


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
