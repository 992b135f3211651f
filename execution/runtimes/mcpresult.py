"""What a tool of an MCP server returned: structured content as a value, blocks as content, an error as a failure."""

from collections.abc import Mapping
from typing import Any

from execution.errors import CallError, ErrorCode
from execution.runtimes.base import Invocation, RunResult
from execution.traffic import Traffic
from registry import strictjson

MAX_BLOCKS = 200
RETRY_AFTER = "dev.placet/retryAfterMs"  # in an error's _meta, by a server that knows when it is worth another try
MAX_RETRY_AFTER = 86_400_000
_TEXTS = {  # what a block of each type must hold, as text
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}


def result_of(result: Mapping[str, Any], invocation: Invocation, traffic: Traffic) -> RunResult:
    """The result, or CallError."""
    if (kind := result.get("resultType", "complete")) != "complete":
        raise _refused(f"it is of the type {str(kind)[:40]}, which asks for more than an answer", traffic)
    blocks = _blocks(result.get("content", []), traffic)
    if result.get("isError") is True:
        raise _failure(result, blocks, traffic)
    schema = invocation.tool.output_schema
    if schema is not None and result.get("structuredContent") is not None:
        return RunResult(value=_value(result["structuredContent"], schema), traffic=traffic)
    if schema is not None and blocks and all(block["type"] == "text" for block in blocks):
        return RunResult(value=_read("\n".join(block["text"] for block in blocks), schema), traffic=traffic)
    return RunResult(content=tuple(blocks), traffic=traffic)


def _blocks(content: Any, traffic: Traffic) -> list[dict[str, Any]]:
    if not isinstance(content, list) or len(content) > MAX_BLOCKS:
        raise _refused(f"its content is not a list of at most {MAX_BLOCKS} blocks", traffic)
    for block in content:
        names = _TEXTS.get(str(block.get("type"))) if isinstance(block, dict) else None
        if names is None or not all(isinstance(block.get(name), str) for name in names):
            raise _refused("one of its blocks is of no known type, or lacks what its type has", traffic)
        if block["type"] == "resource" and not _is_resource(block.get("resource")):
            raise _refused("one of its resources has neither text nor data, or no address", traffic)
    return content


def _is_resource(resource: Any) -> bool:
    if not isinstance(resource, dict) or not isinstance(resource.get("uri"), str):
        return False
    return isinstance(resource.get("text"), str) or isinstance(resource.get("blob"), str)


def _value(structured: Any, schema: Mapping[str, Any]) -> Any:
    """Servers wrap what is no object in a lone `result`; it is the value itself, unless ours is such an object."""
    if not isinstance(structured, dict) or structured.keys() != {"result"}:
        return structured
    declared = schema.get("properties")
    return structured if isinstance(declared, dict) and "result" in declared else structured["result"]


def _read(text: str, schema: Mapping[str, Any]) -> Any:
    """A text, or the JSON in it where the tool declares something else than a text."""
    if schema.get("type", "string") == "string":
        return text
    try:
        return strictjson.loads(text.encode(), max_bytes=max(len(text) * 4, 1))
    except strictjson.StrictJSONError:
        return text


def _failure(result: Mapping[str, Any], blocks: list[dict[str, Any]], traffic: Traffic) -> CallError:
    said = "\n".join(block["text"] for block in blocks if block["type"] == "text").strip()
    meta = result.get("_meta")
    asked = meta.get(RETRY_AFTER) if isinstance(meta, dict) else None
    is_good = isinstance(asked, int) and not isinstance(asked, bool) and 0 <= asked <= MAX_RETRY_AFTER
    message = said or "The tool failed without saying why"
    retry_after = asked if is_good else None
    return CallError(ErrorCode.EXECUTION_FAILED, message, can_retry=True, retry_after_ms=retry_after, traffic=traffic)


def _refused(why: str, traffic: Traffic) -> CallError:
    return CallError(
        ErrorCode.EXECUTION_FAILED,
        "The tool's answer breaks the Model Context Protocol",
        developer_message=f"The result is refused: {why}",
        traffic=traffic,
    )
