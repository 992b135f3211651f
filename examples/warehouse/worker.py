"""A worker of the warehouse: it asks Placet for calls, so nobody has to reach it.

    python examples/warehouse/worker.py --url http://127.0.0.1:8000 --key-file key.txt

Standard library and the package `placet`, nothing else. Start as many as you like; SIGTERM lets one finish its calls.
"""

import argparse
import logging
import os
import time
from pathlib import Path
from typing import Annotated, Any
from zlib import crc32

import placet
from placet import ToolContext, ToolError, Toolkit, tool

toolkit = Toolkit("Warehouse", "1.0.0")
ledger: Path | None = None


@tool(idempotency="read")
def locate(part: Annotated[str, "The part's name."], takes: float = 0.0) -> dict[str, Any]:
    """Finds the bin in which a part lies."""
    walk("locate", part, takes)
    if part == "unicorn":
        raise ToolError("There are no unicorns here", additional_prompt_content="Try nuts, bolts or washers")
    return {"bin": crc32(part.encode()) % 100, "worker": str(os.getpid())}


@tool(risk="medium")
def ship(part: str, to: str, context: ToolContext, takes: float = 0.0) -> dict[str, Any]:
    """Sends a part to a customer."""
    walk("ship", part, takes)
    return {"parcel": f"{part} to {to}, {context.idempotency_key}"}


def walk(what: str, part: str, takes: float) -> None:
    """The work itself: it leaves a line when it begins and when it is done."""
    note(f"{what} {part} begun by {os.getpid()}")
    time.sleep(takes)
    note(f"{what} {part} done by {os.getpid()}")


def note(line: str) -> None:
    logging.info(line)
    if ledger is not None:
        with ledger.open("a") as book:
            book.write(line + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--key-file", type=Path, required=True, help="the key of an agent that may serve it")
    parser.add_argument("--ledger", type=Path, help="a file that gets a line for each step")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
    ledger = options.ledger
    placet.serve(toolkit, options.url, options.key_file.read_text().strip())
