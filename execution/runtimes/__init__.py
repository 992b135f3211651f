"""RUNTIMES: the table from kind to the hand that runs it."""

from execution.errors import CallError, ErrorCode
from execution.runtimes.base import Runtime
from execution.runtimes.container import ContainerRuntime
from execution.runtimes.external import ExternalRuntime
from execution.runtimes.grpc import GrpcRuntime
from execution.runtimes.http import HttpRuntime
from execution.runtimes.mcp import McpRuntime
from execution.runtimes.python import PythonRuntime
from execution.runtimes.wasm import WasmRuntime
from execution.runtimes.webhook import WebhookRuntime
from registry.toolspec import ToolSpec

WEBHOOK = WebhookRuntime()
RUNTIMES: dict[str, Runtime] = {
    "python": PythonRuntime(),
    "http": HttpRuntime(),
    "external": ExternalRuntime(),
    "grpc": GrpcRuntime(),
    "container": ContainerRuntime(),
    "wasm": WasmRuntime(),
    "webhook-callback": WEBHOOK,
    "mcp": McpRuntime(),
}


def runtime_for(tool: ToolSpec) -> Runtime:
    runtime = RUNTIMES.get(tool.runtime.type)
    if runtime is None:
        raise CallError(
            ErrorCode.RUNTIME_INVALID,
            f"This installation cannot run tools of type {tool.runtime.type}",
            developer_message=f"Runtimes here: {', '.join(sorted(RUNTIMES))}",
            is_sent=False,
        )
    return runtime
