"""tools/call that is refused or fails: what is wrong, told to whoever can do something about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from execution.errors import CallError, ErrorCode
from execution.models import Call, State
from execution.runtimes.base import Invocation, RunResult
from policy import revisions
from tests.mcp.desk import VERSIONS, client_of, rpc
from tests.mcp.taskkit import LEGACY, MODERN, LegacyClient, ModernClient
from tests.policy.rules import rule

if TYPE_CHECKING:
    from policy.agents import NewAgent
    from tests.protocols.toolkits import Hands, Publish

pytestmark = pytest.mark.django_db
BOTH = [MODERN, LEGACY]
ARGUMENTS, CALL_ID = "placet.dev/arguments", "placet.dev/call_id"


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
        {"name": "Desk_Echo", "_meta": {"progressToken": "t" * 1001}},  # each notification would repeat it
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
