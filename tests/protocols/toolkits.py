"""The toolkits that the specification's examples speak of, as manifests, and the hands that run them."""

from collections.abc import Callable, Mapping
from typing import Any

from execution.errors import CallError, ErrorCode
from execution.runtimes.base import Invocation, RunResult
from registry.models import ToolkitVersion

Publish = Callable[[dict[str, Any]], ToolkitVersion]

NUMBER = {"type": "number"}
RUNTIME = {"type": "http", "endpoint": "https://tools.example/", "dispatch": "inline", "timeout": "2s"}


def manifest(name: str, version: str, *tools: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "placet.dev/v1",
        "kind": "Toolkit",
        "metadata": {"name": name, "version": version, "title": name, "description": description},
        "spec": {"tools": [{"runtime": RUNTIME, **tool} for tool in tools]},
    }


def calculator(version: str, *more: str) -> dict[str, Any]:
    """Adds a and b, and whatever else this version knows; an unknown parameter tells the versions apart."""
    words = {"a": "The first number to add.", "b": "The second number to add.", "c": "One more number to add."}
    properties = {name: {**NUMBER, "description": words[name]} for name in ("a", "b", *more)}
    schema = {"type": "object", "properties": properties, "required": ["a", "b"], "additionalProperties": False}
    add = {"name": "Add", "description": "Add two numbers together", "input": schema, "output": NUMBER}
    return manifest("Calculator", version, add, description="A toolkit for performing calculations.")


DOORBELL = manifest(
    "Doorbell",
    "0.1.0",
    {
        "name": "Ring",
        "description": "Ring a doorbell",
        "input": {
            "type": "object",
            "properties": {"doorbell_id": {"type": "string"}},
            "required": ["doorbell_id"],
            "additionalProperties": False,
        },
        "output": None,
    },
)
MAIL = manifest(
    "Mail",
    "1.0.0",
    {
        "name": "Send",
        "description": "Send a letter",
        "input": {
            "type": "object",
            "properties": {
                "to": {"$ref": "#/$defs/Address"},
                "body": {"type": "string", "title": "The letter"},
                "is_admin": {"type": "boolean"},
            },
            "$defs": {"Address": {"type": "string", "maxLength": 200}},
        },
        "nonInferrable": ["is_admin"],
        "requirements": {
            "authorization": [{"id": "google", "oauth2": {"scopes": ["mail.send"]}}],
            "secrets": [{"id": "SMTP_KEY"}],
            "userId": True,
        },
    },
    {"name": "Draft", "output": {"type": ["string", "null"], "description": "The draft."}},
)


class Hands:
    """Runs what the examples need without a process; remembers what it was given."""

    def __init__(self) -> None:
        self.runs: list[Invocation] = []
        self.overrides: dict[str, Callable[[Invocation], RunResult]] = {}

    def run(self, invocation: Invocation) -> RunResult:
        self.runs.append(invocation)
        tool = invocation.tool
        if (override := self.overrides.get(tool.flat_name)) is not None:
            return override(invocation)
        if tool.toolkit == "Calculator":
            return RunResult(value=sum(invocation.arguments.values()))
        if tool.toolkit == "Doorbell" and invocation.arguments["doorbell_id"] not in ("doorbell42", "doorbell84"):
            raise CallError(
                ErrorCode.EXECUTION_FAILED,
                "Doorbell ID not found",
                developer_message=f"The doorbell with ID '{invocation.arguments['doorbell_id']}' does not exist.",
                can_retry=True,
                additional_prompt_content="ids: doorbell42,doorbell84",
                retry_after_ms=500,
            )
        return RunResult()
