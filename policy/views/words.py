"""What people read instead of the names that programs use."""

from registry.models import Capability
from registry.risk import RiskLevel

CAPABILITIES = {
    "data.read": "reads data",
    "data.write": "changes data",
    "network.read": "fetches from the network",
    "network.write": "sends to the network",
    "filesystem.read": "reads files",
    "filesystem.write": "writes files",
    "exec.command": "runs commands",
    "external.side_effect": "has effects outside that cannot be taken back",
}
# The colours that unfold gives to its labels.
RISKS = {
    RiskLevel.LOW: "success",
    RiskLevel.MEDIUM: "info",
    RiskLevel.HIGH: "warning",
    RiskLevel.CRITICAL: "danger",
}
STATES = {
    "pending": "primary",
    "approved": "success",
    "consumed": "success",
    "denied": "danger",
    "expired": "warning",
    "lapsed": "warning",
    "revoked": "danger",
    "withdrawn": "",
}


def in_words(capability: Capability) -> str:
    """What a tool with this capability can do; an own capability speaks for itself."""
    return CAPABILITIES.get(capability.name) or capability.description or capability.name
