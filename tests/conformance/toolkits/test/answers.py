"""The tools that the official conformance suite calls by name: one for each kind of answer."""

import base64
import time
from typing import Annotated

from placet import Audio, Image, Resource, Text, ToolContext, ToolError, Toolkit, tool

toolkit = Toolkit(name="test", version="1.0.0", title="Test", description="Answers that the suite looks at.")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
SILENCE = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==")


@tool(name="simple_text", idempotency="read", dispatch="inline")
def simple_text() -> Text:
    """Answers with one text."""
    return Text("This is a simple text response for testing.")


@tool(name="image_content", idempotency="read", dispatch="inline")
def image_content() -> Image:
    """Answers with a picture."""
    return Image(PIXEL, "image/png")


@tool(name="audio_content", idempotency="read", dispatch="inline")
def audio_content() -> Audio:
    """Answers with a sound."""
    return Audio(SILENCE, "audio/wav")


@tool(name="embedded_resource", idempotency="read", dispatch="inline")
def embedded_resource() -> Resource:
    """Answers with a document."""
    return Resource("test://embedded-resource", "text/plain", text="This is an embedded resource content.")


@tool(name="multiple_content_types", idempotency="read", dispatch="inline")
def multiple_content_types() -> list[Text | Image | Resource]:
    """Answers with a text, a picture and a document."""
    data = '{"test":"data","value":123}'
    return [
        Text("Multiple content types test:"),
        Image(PIXEL, "image/png"),
        Resource("test://mixed-content-resource", "application/json", text=data),
    ]


@tool(name="error_handling", idempotency="read", dispatch="inline")
def error_handling() -> None:
    """Fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool(name="tool_with_progress", idempotency="read")
def tool_with_progress(context: ToolContext) -> Text:
    """Tells how far it has come, three times."""
    for done in (0, 50, 100):
        context.progress(done, 100, f"Completed step {done} of 100")
        time.sleep(0.15)  # further apart than what is told of one call at most
    return Text("The work is done.")


@tool(name="tool_with_logging", idempotency="read")
def tool_with_logging(context: ToolContext) -> Text:
    """Logs three lines."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.log.info(line)
        time.sleep(0.15)
    return Text("Three lines were logged.")


@tool(name="logging_tool", idempotency="read", dispatch="inline")
def logging_tool(context: ToolContext) -> Text:
    """Logs a line that nobody asked for."""
    context.log.info("Only for who set a level")
    return Text("One line was logged.")


@tool(name="streaming_elicitation", idempotency="read", dispatch="inline")
def streaming_elicitation(context: ToolContext) -> Text:
    """Answers over a stream, without asking anybody anything."""
    context.progress(1, 1)
    return Text("Nothing had to be asked.")


@tool(name="custom_header", idempotency="read", dispatch="inline")
def custom_header(
    region: Annotated[str, "Repeated in a header.", {"x-mcp-header": "Region"}] = "",
    priority: Annotated[int, "Repeated in a header, too.", {"x-mcp-header": "Priority"}] = 0,
) -> Text:
    """Wants two of its parameters repeated in headers."""
    return Text(f"{region} {priority}")
