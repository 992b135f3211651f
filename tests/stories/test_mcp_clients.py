"""Real clients of the running product, in both eras of MCP: the official Python client and the Inspector."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError

from tests.conformance import tools
from tests.stories.laboratory import Laboratory, lines
from tests.stories.mcpclients import LEGACY, MODERN, WAYS, Place, Tasks, Way
from tests.stories.people import Person, hire
from tests.stories.product import wait_until

pytestmark = pytest.mark.story

# No story here is about a worker that is lost; on a busy machine a short lease would tell such a one.
SETTINGS = {"PLACET_LEASE": "30"}

FIXTURES = Path(__file__).parents[1] / "conformance" / "toolkits"
PREPARE = """
import django; django.setup()
from django.core.management import call_command
for folder in sys.argv[1:]:
    call_command("import_toolkit", folder, publish=True, reviewer="admin", verbosity=0, stdout=sys.stderr)
call_command("create_agent", "desk", call=["Lab", "test", "slow"], json=True)
"""
EVERY_WAY = pytest.mark.parametrize("way", WAYS, ids=str)
APPROVAL = re.compile(r"/approvals/([0-9a-f-]{36})/")


@pytest.fixture(scope="module")
def place(laboratory: Laboratory) -> Place:
    told = laboratory.script(PREPARE, str(FIXTURES / "test"), str(FIXTURES / "slow"))
    key = json.loads(told)["key"]
    file = laboratory.folder / "key"
    file.write_text(key)
    file.chmod(0o600)
    return Place(f"http://127.0.0.1:{laboratory.product.port}", key, file)


@pytest.fixture(scope="module")
def grace(laboratory: Laboratory) -> Person:
    (person,) = hire(laboratory, "grace")
    return person


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@EVERY_WAY
def test_it_lists_the_tools_it_may_call(place: Place, way: Way) -> None:
    async def use(client: Client) -> list[types.Tool]:
        return (await client.list_tools()).tools

    listed = {tool.name: tool for tool in place.visit(way, use)}
    assert {"Lab_Echo", "Lab_Fire", "test_simple_text", "slow_compute"} <= set(listed)
    assert "System_RunCommand" not in listed
    assert listed["Lab_Fire"].input_schema["required"] == ["ledger"]
    assert listed["Lab_Echo"].annotations is not None
    assert listed["Lab_Echo"].annotations.read_only_hint is True


@EVERY_WAY
def test_it_calls_a_tool(place: Place, way: Way) -> None:
    async def use(client: Client) -> list[Any]:
        texts = await client.call_tool("test_simple_text")
        mixed = await client.call_tool("test_multiple_content_types")
        value = await client.call_tool("Lab_Echo", {"value": {"größe": [1, 2.5, None]}})
        return [text_of(texts), [block.type for block in mixed.content], value.structured_content or text_of(value)]

    text, kinds, value = place.visit(way, use)
    assert text == "This is a simple text response for testing."
    assert kinds == ["text", "image", "resource"]
    read = json.loads(value) if isinstance(value, str) else value
    assert read in ({"größe": [1, 2.5, None]}, {"result": {"größe": [1, 2.5, None]}})


@EVERY_WAY
def test_a_tools_error_is_a_result_and_an_unknown_tool_is_an_error(place: Place, way: Way) -> None:
    async def use(client: Client) -> tuple[types.CallToolResult, types.CallToolResult, MCPError]:
        failed = await client.call_tool("Lab_Fail", {"message": "no luck"})
        wrong = await client.call_tool("Lab_Fail", {"message": 7})
        with pytest.raises(MCPError) as caught:
            await client.call_tool("Lab_Fial", {"message": "x"})
        return failed, wrong, caught.value

    failed, wrong, unknown = place.visit(way, use)
    assert failed.is_error
    assert "no luck" in text_of(failed)
    assert wrong.is_error
    assert "message" in text_of(wrong)
    assert unknown.code == -32602
    assert "Lab_Fail" in json.dumps(unknown.error.data)


@EVERY_WAY
def test_it_hears_how_far_a_tool_has_come(place: Place, way: Way) -> None:
    heard: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async def use(client: Client) -> str:
        return text_of(await client.call_tool("test_tool_with_progress", progress_callback=on_progress))

    assert place.visit(way, use) == "The work is done."
    assert heard == [(0, 100), (50, 100), (100, 100)]


@EVERY_WAY
def test_a_client_that_cannot_show_an_address_gets_it_in_a_text_and_asks_again(
    laboratory: Laboratory, place: Place, grace: Person, way: Way
) -> None:
    ledger = laboratory.ledger()

    async def use(client: Client) -> tuple[types.CallToolResult, types.CallToolResult]:
        first = await client.call_tool("Lab_Fire", {"ledger": str(ledger)})
        found = APPROVAL.search(text_of(first))
        assert found is not None, text_of(first)
        assert lines(ledger) == 0
        assert grace.approve(found[1]).status == 200
        assert wait_until(lambda: lines(ledger) == 1)
        return first, await client.call_tool("Lab_Fire", {"ledger": str(ledger)})

    first, second = place.visit(way, use)
    assert first.is_error
    assert not second.is_error
    assert lines(ledger) == 1


@EVERY_WAY
def test_a_client_that_shows_addresses_is_sent_to_the_approval_and_gets_the_result(
    laboratory: Laboratory, place: Place, grace: Person, way: Way
) -> None:
    ledger = laboratory.ledger()
    shown: list[str] = []

    async def person(_: Any, asked: Any) -> types.ElicitResult:
        shown.append(asked.url)
        found = APPROVAL.search(asked.url)
        assert found is not None
        assert grace.approve(found[1]).status == 200
        return types.ElicitResult(action="accept")

    async def use(client: Client) -> types.CallToolResult:
        if way.version == LEGACY:  # its client is told by an error, opens the address by itself, and calls again
            with pytest.raises(MCPError) as told:
                await client.call_tool("Lab_Fire", {"ledger": str(ledger)})
            assert told.value.code == -32042
            (asked,) = types.ElicitationRequiredErrorData.model_validate(told.value.error.data).elicitations
            await person(None, asked)
        return await client.call_tool("Lab_Fire", {"ledger": str(ledger)})

    result = place.visit(way, use, elicitation_callback=person)
    assert not result.is_error
    assert len(shown) == 1
    assert lines(ledger) == 1


@EVERY_WAY
def test_a_long_call_goes_on_as_a_task(place: Place, way: Way) -> None:
    extension = Tasks()

    async def use(client: Client) -> str:
        return text_of(await client.call_tool("slow_compute", {"seconds": 2, "label": "x"}))

    told = place.visit(way, use, extensions=[extension] if way.version == MODERN else None)
    assert told == "Computed x for 2 s"
    assert extension.seen == (["working", "completed"] if way.version == MODERN else [])


@EVERY_WAY
def test_several_calls_run_at_once(place: Place, way: Way) -> None:
    async def use(client: Client) -> list[str]:
        told: list[str] = []

        async def one(number: int) -> None:
            told.append(text_of(await client.call_tool("Lab_Echo", {"value": f"n{number}"})))

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(one, number)
        return told

    told = "".join(place.visit(way, use))
    assert all(f"n{number}" in told for number in range(8))


@EVERY_WAY
def test_a_cancelled_call_is_cancelled_here_too(laboratory: Laboratory, place: Place, way: Way) -> None:
    ledger = laboratory.ledger()
    began = threading.Event()

    async def use(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "Lab_Slow", {"ledger": str(ledger), "seconds": 15})
            while lines(ledger) == 0:
                await anyio.sleep(0.05)
            began.set()
            group.cancel_scope.cancel()
        await anyio.sleep(0.5)
        assert not (await client.call_tool("Lab_Echo", {"value": 1})).is_error  # the connection goes on

    place.visit(way, use)
    newest = "SELECT state FROM execution_call WHERE tool_ref LIKE 'Lab.Slow@%%' ORDER BY created_at DESC"
    newest = newest if laboratory.database_url else newest.replace("%%", "%")
    assert wait_until(lambda: laboratory.query(newest)[0][0] == "cancelled", 15), laboratory.query(newest)[0]


def inspect(place: Place, era: str, method: str, *more: str) -> tuple[int, str]:
    """One run of the Inspector's command line: its exit code, and what it told."""
    asked = ["--cli", "--server-url", f"{place.url}/mcp", "--transport", "http", "--protocol-era", era]
    asked += ["--format", "json", "--method", method, *more, "--header", f"Authorization: Bearer {place.key}"]
    done = tools.run(tools.command("mcp-inspector", *asked), 60)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.needs("inspector")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_the_inspector_lists_and_calls_and_is_told_of_errors(place: Place, era: str) -> None:
    code, listed = inspect(place, era, "tools/list")
    assert (code, "Lab_Echo" in listed) == (0, True), listed
    code, told = inspect(place, era, "tools/call", "--tool-name", "test_simple_text")
    assert (code, "This is a simple text response for testing." in told) == (0, True), told
    message = json.dumps({"message": "bad luck"})
    code, told = inspect(place, era, "tools/call", "--tool-name", "Lab_Fail", "--tool-args-json", message)
    assert (code, "bad luck" in told) == (5, True), told


@pytest.mark.needs("inspector")
def test_the_inspector_is_told_where_a_call_is_approved(laboratory: Laboratory, place: Place, grace: Person) -> None:
    """In the older era: in the modern one it waits at its terminal for somebody who opens the address."""
    asked = (
        "tools/call",
        "--tool-name",
        "Lab_Fire",
        "--tool-args-json",
        json.dumps({"ledger": str(laboratory.ledger())}),
    )
    _, told = inspect(place, "legacy", *asked)
    found = APPROVAL.search(told)
    assert found is not None, told
    assert grace.approve(found[1]).status == 200
    code, told = inspect(place, "legacy", *asked)
    assert code == 0, told
