"""A toolkit for performing calculations."""

from typing import Annotated

from placet import Toolkit, tool

toolkit = Toolkit("Calculator", "1.1.0")


@tool(
    title="Add numbers",
    risk="low",
    capabilities=["data.read"],
    idempotency="read",
    dispatch="inline",
    timeout="2s",
    annotations={"readOnlyHint": True},
)
def add(
    a: Annotated[float, "The first number to add."],
    b: Annotated[float, "The second number to add."],
    c: Annotated[float, "A third number to add, if there is one."] = 0,
) -> float:
    """Adds two numbers together."""
    return a + b + c
