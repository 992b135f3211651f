"""An MCP server with a few tools, made with the official SDK; Placet calls them through its mcp runtime.

.venv/bin/pip install 'mcp>=2.3,<3'
.venv/bin/python examples/mcp_server/server.py --port 8331
"""

import argparse
import asyncio
import base64

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

server = MCPServer("letters")


@server.tool()
def count(text: str) -> dict[str, int]:
    """Counts the letters and the words of a text."""
    return {"letters": sum(letter.isalpha() for letter in text), "words": len(text.split())}


@server.tool()
def shout(text: str) -> str:
    """The same text, louder."""
    if not text.strip():
        raise ToolError("There is nothing to shout")
    return text.upper()


@server.tool()
def pixel() -> Image:
    """A picture of one pixel."""
    return Image(data=base64.b64decode(PIXEL), format="png")


@server.tool()
async def spell(text: str, ctx: Context) -> str:
    """Spells a text letter by letter, and tells how far it is."""
    for number, _ in enumerate(text, 1):
        await ctx.report_progress(number, len(text), f"letter {number}")
        await asyncio.sleep(0.05)
    return "-".join(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--port", type=int, default=8331)
    port = parser.parse_args().port
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning")
