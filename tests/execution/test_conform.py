"""manage.py conform: a tool that keeps the contract passes, and each way to break it fails exactly its check."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.execution import conformkit
from tests.execution.conformkit import TOKEN, Tool
from tests.services.toolserver import answer, hang, toolserver

ENDPOINTS = {
    "external": conformkit.external,
    "webhook-callback": conformkit.webhook,
    "http": conformkit.http,
    "grpc": conformkit.grpc,
}
ALL = {
    "input": json.dumps(conformkit.INPUT),
    "slow_input": json.dumps(conformkit.SLOW),
    "fail_input": json.dumps(conformkit.FAIL),
    "denied_input": json.dumps(conformkit.DENIED),
    "token_env": "TOOL_TOKEN",
    "timeout": 3.0,
}


@pytest.fixture(autouse=True)
def opened(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    monkeypatch.setenv("TOOL_TOKEN", TOKEN)


def conform(url: str, runtime: str, **options: Any) -> tuple[int, str]:
    """How it ended and what it printed."""
    out = io.StringIO()
    try:
        call_command("conform", url, runtime=runtime, stdout=out, **options)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


def checked(tool: Tool, runtime: str, **options: Any) -> dict[str, list[str]]:
    with ENDPOINTS[runtime](tool) as url:
        code, printed = conform(url, runtime, json=True, **{**ALL, **options})
    told = json.loads(printed)
    assert told["conforms"] is (code == 0)
    found: dict[str, list[str]] = {"pass": [], "fail": [], "not applicable": []}
    for check in told["checks"]:
        found[check["outcome"]].append(check["check"])
        assert check["reason"]
        assert TOKEN not in check["reason"]
    assert told["counts"] == {outcome: len(names) for outcome, names in found.items()}
    return found


@pytest.mark.parametrize(
    ("runtime", "others"),
    [
        (
            "external",
            {
                "an answer that looks like a response is one",
                "speaks application/grpc+json",
                "answers UNIMPLEMENTED for a method it does not have",
                "has no answer to a request that it never got",
            },
        ),
        (
            "webhook-callback",
            {
                "an answer that looks like a response is one",
                "speaks application/grpc+json",
                "answers UNIMPLEMENTED for a method it does not have",
            },
        ),
        (
            "grpc",
            {
                "an answer that looks like a response is one",
                "has no answer to a request that it never got",
            },
        ),
    ],
)
def test_a_tool_that_keeps_the_contract_passes_everything(runtime: str, others: set[str]) -> None:
    found = checked(Tool(), runtime)
    assert found["fail"] == []
    assert set(found["not applicable"]) == others | {"runs in the isolation that its risk asks for"}


def test_a_plain_web_service_passes_what_concerns_it() -> None:
    found = checked(Tool(), "http")
    assert found["fail"] == []
    assert set(found["pass"]) == {
        "answers a valid request with ok",
        "answers what is not JSON with a refusal",
        "an answer that looks like a response is one",
        "answers within the timeout that it is told",
        "goes on after a caller left in the middle",
        "says of its failures whether another attempt may help",
        "lets nobody in without credentials",
        "lets nobody in with the wrong credentials",
        "never sends credentials back",
        "classifies the same request the same way each time",
        "gives a request that comes again the answer it had",
    }


@pytest.mark.parametrize(
    ("fault", "failed"),
    [
        ("name no version", "names version v1 in its response"),
        ("number itself", "echoes request_id"),
        ("list its output", "ok carries an output and no error"),
        ("end in doubt", "ok carries an output and no error"),
        ("need a version", "takes a request without a version for v1"),
        ("take any version", "refuses another version"),
        ("need no id", "requires request_id"),
        ("need no tool", "requires tool.name"),
        ("be brief", "its errors have all five fields"),
        ("crash on nonsense", "answers what is not JSON with a refusal"),
        ("ignore the time", "answers timeout when its time is over"),
        ("sulk", "goes on after a caller left in the middle"),
        ("miscount", "reports its attempt, counted from 1"),
        ("hope", "says that a bad request is not worth another attempt"),
        ("shrug", "says of its failures whether another attempt may help"),
        ("let any key in", "lets nobody in with the wrong credentials"),
        ("echo the key", "never sends credentials back"),
        ("deny by error", "tells a denial as one, for good"),
        ("lose the trace", "echoes the trace"),
        ("tell no time", "reports how long it took"),
        ("waver", "classifies the same request the same way each time"),
        ("forget", "gives a request that comes again the answer it had"),
    ],
)
@pytest.mark.parametrize("runtime", ["external", "grpc"])
def test_each_way_to_break_the_contract_fails_exactly_its_check(runtime: str, fault: str, failed: str) -> None:
    slow = ALL["slow_input"] if fault in ("ignore the time", "sulk") else None  # the others need not wait for it
    assert checked(Tool(fault), runtime, slow_input=slow)["fail"] == [failed]


def test_a_tool_that_lets_everybody_in_fails_both_checks_of_it() -> None:
    assert checked(Tool("let all in"), "external")["fail"] == [
        "lets nobody in without credentials",
        "lets nobody in with the wrong credentials",
    ]


def test_a_webhook_that_answers_what_it_was_never_asked_fails_that() -> None:
    assert checked(Tool("know everything"), "webhook-callback")["fail"] == [
        "has no answer to a request that it never got"
    ]


@pytest.mark.parametrize(
    ("fault", "failed"),
    [
        ("crash on nonsense", "answers what is not JSON with a refusal"),
        ("end in doubt", "an answer that looks like a response is one"),
        ("forget", "gives a request that comes again the answer it had"),
    ],
)
def test_a_plain_web_service_can_fail_too(fault: str, failed: str) -> None:
    assert checked(Tool(fault), "http")["fail"] == [failed]


def test_what_nobody_gave_an_input_for_is_not_judged() -> None:
    without = {"slow_input": None, "fail_input": None, "denied_input": None, "token_env": None}
    found = checked(Tool("let all in"), "external", **without)
    assert found["fail"] == []
    assert "tells a denial as one, for good" in found["not applicable"]
    assert "lets nobody in without credentials" in found["not applicable"]
    assert "never sends credentials back" in found["pass"]


@pytest.mark.parametrize("act", [answer("hello"), answer("", 500), hang()])
def test_what_does_not_answer_at_all_fails_once_and_the_rest_is_not_judged(act: Any) -> None:
    with toolserver({"/": act}) as server:
        code, printed = conform(f"{server.url}/", "external", json=True, timeout=0.2)
    told = json.loads(printed)
    assert (code, told["conforms"], told["counts"]["pass"]) == (1, False, 0)
    assert [each["check"] for each in told["checks"] if each["outcome"] == "fail"] == [
        "answers a valid request with ok"
    ]


@pytest.mark.parametrize("runtime", ENDPOINTS)
def test_a_tool_that_never_answers_ok_fails_once_and_the_rest_is_not_judged(runtime: str) -> None:
    found = checked(Tool("never work"), runtime)
    assert (found["pass"], found["fail"]) == ([], ["answers a valid request with ok"])


@pytest.mark.parametrize("runtime", ENDPOINTS)
def test_a_tool_that_answers_ok_once_is_judged_by_that_answer_and_fails_what_asks_again(runtime: str) -> None:
    found = checked(Tool("tire after one"), runtime)
    assert "answers a valid request with ok" in found["pass"]
    assert "goes on after a caller left in the middle" in found["fail"]


def test_the_table_has_a_line_for_each_check_and_a_sum() -> None:
    with conformkit.external(Tool("lose the trace")) as url:
        code, printed = conform(url, "external", **ALL)
    lines = printed.splitlines()
    assert code == 1
    assert lines[0].split() == ["group", "check", "verdict", "reason"]
    (failed,) = [line for line in lines if "  fail  " in line]
    assert failed.split("  ")[0] == "Observability"
    assert failed.endswith("trace is {}")
    assert lines[-1].startswith("23 passed, 1 failed, 5 not applicable")
    for group in ("Contract", "Timeout/Cancel", "Retry", "Auth/Secret", "Policy hooks", "Isolation", "Determinism"):
        assert any(line.startswith(group) for line in lines)


def test_what_an_endpoint_says_cannot_write_on_the_terminal() -> None:
    with toolserver({"/": answer("\x1b[2J\x07 gone")}) as server:
        _, printed = conform(f"{server.url}/", "external")
    assert "\x1b" not in printed
    assert "\x07" not in printed


def test_a_closed_address_is_not_asked(settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = []
    with toolserver() as server:
        with pytest.raises(CommandError, match="egress_denied"):
            conform(f"{server.url}/", "external")
        assert server.connections == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"input": "[1]"}, "--input must be a JSON object"),
        ({"fail_input": "{"}, "--fail-input is not JSON"),
        ({"token_env": "NO_SUCH_VARIABLE"}, "NO_SUCH_VARIABLE is empty"),
        ({"timeout": 0}, "--timeout"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        conform("http://127.0.0.1:9/", "external", **options)
