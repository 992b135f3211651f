"""What a tool's facts mean, in words for people: risk, capabilities, repeating, and where it runs."""

from registry.models import Tool
from registry.risk import RiskLevel

RISKS = {
    RiskLevel.LOW: "A wrong call does little harm. It runs at once unless a rule says otherwise.",
    RiskLevel.MEDIUM: "A wrong call costs work to put right. It runs at once unless a rule says otherwise.",
    RiskLevel.HIGH: "A wrong call hurts. One person agrees to each call unless a rule says otherwise.",
    RiskLevel.CRITICAL: "A wrong call may be beyond repair. Two agree to each call unless a rule says otherwise.",
}
CAPABILITIES = {
    "data.read": "reads data",
    "data.write": "changes data",
    "network.read": "fetches from the network",
    "network.write": "sends to the network",
    "filesystem.read": "reads files",
    "filesystem.write": "changes files",
    "exec.command": "runs commands",
    "external.side_effect": "has an effect outside that cannot be taken back",
}
REPEATING = {
    Tool.Idempotency.READ: "Only reads: it may be called again without harm.",
    Tool.Idempotency.IDEMPOTENT: "Calling it twice has the effect of calling it once.",
    Tool.Idempotency.KEYED: "Knows a repeated call by its id, and does it once.",
    Tool.Idempotency.NON_IDEMPOTENT: "Each call has its own effect; a lost one is never run again by itself.",
}
RUNTIMES = {
    "python": "a Python function, in a process without our keys",
    "http": "a JSON request to a web service",
    "external": "a service that speaks Tool Contract v1",
    "grpc": "a service that is called over gRPC",
    "webhook-callback": "a service that takes the request now and answers later",
    "container": "a fresh container for each call",
    "wasm": "a WebAssembly module in a sandbox",
    "mcp": "a tool of another MCP server",
    "session": "an outside worker that pulls its calls",
}


def capability(name: str, description: str = "") -> str:
    """What the tool can do with it; of an own one what its description says, if it has one."""
    return CAPABILITIES.get(name) or description
