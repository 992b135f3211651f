"""Results: what came of a call, as MCP tells it: a tool's answer, a tool's error, or an error of the protocol."""

from collections.abc import Mapping
from typing import Any

import orjson

from execution.errors import ErrorCode, Failure
from execution.messages import CallOutcome
from execution.protocols.mcp.examples import example
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.listing import shelf_of
from execution.protocols.mcp.rpcerrors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from execution.protocols.mcp.wording import told
from execution.suggestions import nearest
from registry.resolution import resolve
from registry.schemawords import lowered
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec

CALL_ID = "placet.dev/call_id"
ERROR = "placet.dev/error"
WARNINGS = "placet.dev/warnings"
_MODELS_CORRECT_INPUT = "2025-11-25"  # from here on wrong arguments are a tool's error, which a model gets to read
_FIRST_WITH_STRUCTURE = "2025-06-18"  # and with links to resources


def call_result(outcome: CallOutcome, exchange: Exchange) -> Mapping[str, Any]:
    """A CallToolResult; RpcError where the client's revision wants an error of the protocol instead."""
    if outcome.failure is None:
        return _success(outcome, exchange)
    if (error := protocol_error(outcome, outcome.failure, exchange)) is not None:
        raise error
    return _failed(outcome, outcome.failure)


def refusal(outcome: CallOutcome, exchange: Exchange) -> RpcError:
    """A failed call as an error of the protocol, where no result of a tool can be told."""
    assert outcome.failure is not None
    failure = outcome.failure
    if (error := protocol_error(outcome, failure, exchange)) is not None:
        return error
    if failure.code is ErrorCode.INVALID_INPUT:
        return _invalid_input(outcome, failure, is_plain=False)
    text = told(outcome, failure, None)
    return _error(INTERNAL_ERROR, "The call was refused", text, outcome, failure, is_plain=False)


def protocol_error(outcome: CallOutcome, failure: Failure, exchange: Exchange) -> RpcError | None:
    """What is wrong with the request or with us rather than with the tool; in the plain dialect, whatever is wrong."""
    is_plain = exchange.era is Era.PLAIN
    match failure.code:
        case ErrorCode.UNSUPPORTED_TOOL:
            return _unknown_tool(exchange, failure)
        case ErrorCode.INVALID_INPUT if is_plain or exchange.version < _MODELS_CORRECT_INPUT:
            return _invalid_input(outcome, failure, is_plain=is_plain)
        case ErrorCode.CALL_ID_REUSED | ErrorCode.INVALID_REQUEST:
            return _error(INVALID_PARAMS, "Invalid params", failure.message, outcome, failure, is_plain=is_plain)
        case ErrorCode.INTERNAL:
            return _error(INTERNAL_ERROR, "Internal error", failure.message, outcome, failure, is_plain=is_plain)
    if is_plain:
        text = told(outcome, failure, None)
        return _error(INTERNAL_ERROR, "Internal error", text, outcome, failure, is_plain=True)
    return None


def _success(outcome: CallOutcome, exchange: Exchange) -> dict[str, Any]:
    result: dict[str, Any] = {"content": []}
    if outcome.content:
        result["content"] = [_block(block, exchange) for block in outcome.content]
    elif outcome.value is not None or _declares_output(outcome):
        result |= _valued(outcome.value, exchange)
    if exchange.era is Era.PLAIN:  # knows nothing else
        return result
    meta: dict[str, Any] = {CALL_ID: outcome.call_id}
    if outcome.warnings:
        meta[WARNINGS] = list(outcome.warnings)
    return {**result, "isError": False, "_meta": meta}


def _valued(value: Any, exchange: Exchange) -> dict[str, Any]:
    """The value as it is, where the revision can carry it, and always as a text too."""
    is_object = isinstance(value, dict)
    if exchange.era is Era.PLAIN:
        value = value if is_object else {"result": value}  # as document 003 writes what is no object
    is_told = exchange.era is not Era.LEGACY or (is_object and exchange.version >= _FIRST_WITH_STRUCTURE)
    content = [{"type": "text", "text": value if isinstance(value, str) else orjson.dumps(value).decode()}]
    return {"content": content, "structuredContent": value} if is_told else {"content": content}


def _failed(outcome: CallOutcome, failure: Failure) -> dict[str, Any]:
    """A failure that a model can read, act upon or pass on; programs find the same in `_meta`."""
    shown = _example(outcome) if failure.code is ErrorCode.INVALID_INPUT else None
    error = failure.as_json()
    if shown is not None:
        error["example"] = shown
    return {
        "content": [{"type": "text", "text": told(outcome, failure, shown)}],
        "isError": True,
        "_meta": {CALL_ID: outcome.call_id, ERROR: error},
    }


def _unknown_tool(exchange: Exchange, failure: Failure) -> RpcError:
    name = str(exchange.params.get("name"))
    near = nearest(name, (tool.flat_name for tool in shelf_of(exchange.caller).tools))
    hint = f"; did you mean {' or '.join(near)}?" if near else "; tools/list names those that can be called"
    data = {"detail": f"Tool '{name}' was not found{hint}", "suggestions": near}
    if exchange.era is Era.PLAIN:
        return RpcError(METHOD_NOT_FOUND, "Method not found", data, is_recorded=True)
    return RpcError(INVALID_PARAMS, f"Unknown tool: {name}{hint if near else ''}", data, is_recorded=True)


def _invalid_input(outcome: CallOutcome, failure: Failure, *, is_plain: bool) -> RpcError:
    """In the words of document 003: Parameter 'number1' is required."""
    said = [f"{_named(name)} {lowered(why)}" for name, why in failure.parameter_errors.items()]
    more: dict[str, Any] = {"parameters": failure.by_parameter("arguments")}
    if (shown := _example(outcome)) is not None:
        more["example"] = shown
    detail = "; ".join(said) or failure.message
    return _error(INVALID_PARAMS, "Invalid params", detail, outcome, failure, is_plain=is_plain, **more)


def _named(parameter: str) -> str:
    return f"Parameter '{parameter}'" if parameter else "The object of arguments"


def _error(
    code: int, message: str, detail: str, outcome: CallOutcome, failure: Failure, *, is_plain: bool, **more: Any
) -> RpcError:
    data: dict[str, Any] = {"detail": detail, "code": failure.code.wire, "call_id": outcome.call_id, **more}
    if failure.retry_after_ms is not None:
        data["retry_after_ms"] = failure.retry_after_ms
    if failure.developer_message:
        data["developer_message"] = failure.developer_message
    return RpcError(code, message if is_plain else f"{message}: {detail}", data, is_recorded=True)


def _block(block: Mapping[str, Any], exchange: Exchange) -> Mapping[str, Any]:
    """A content block as it came; clients of the oldest revision do not know links yet, and read them."""
    knows_links = exchange.era is not Era.LEGACY or exchange.version >= _FIRST_WITH_STRUCTURE
    if knows_links or block.get("type") != "resource_link":
        return block
    return {"type": "text", "text": f"{block.get('name', '')}: {block.get('uri', '')}"}


def _declares_output(outcome: CallOutcome) -> bool:
    """Whether nothing is an answer of this tool, or just nothing."""
    tool = _tool(outcome)
    return tool is not None and isinstance(tool.output_schema, dict) and bool(tool.output_schema)


def _example(outcome: CallOutcome) -> Mapping[str, Any] | None:
    tool = _tool(outcome)
    return None if tool is None else example(tool)


def _tool(outcome: CallOutcome) -> ToolSpec | None:
    ref = ToolRef.parse(outcome.tool_id)
    return None if ref is None else resolve(ref)
