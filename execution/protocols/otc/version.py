"""The draft of OTC that we speak, and the names it goes by."""

from typing import Any

from execution.protocols.oxp import version as oxp

SCHEMA = "https://github.com/ArcadeAI/OpenToolCalling/tree/main/specification/http/1.0/openapi.json"
NAMES = frozenset(
    {SCHEMA, "https://github.com/OpenToolCalling/Specification/tree/main/specification/http/1.0/openapi.json"}
)


def check(envelope: dict[str, Any]) -> None:
    oxp.check(envelope, NAMES, SCHEMA)
