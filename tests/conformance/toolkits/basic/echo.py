"""The first tool of the list, for scenarios that call whichever comes first."""

from typing import Annotated

from placet import Text, Toolkit, tool

toolkit = Toolkit(name="basic", version="1.0.0", title="Basic", description="Does as little as a tool can.")


@tool(name="echo", idempotency="read", dispatch="inline")
def echo(text: Annotated[str, "What to say."] = "") -> Text:
    """Says what it was told."""
    return Text(text)
