"""The command `placet`, for whoever uses a Placet from elsewhere."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from placet.bridge import Address, Key, Relay, Unusable
from placet.bridge.relay import log_to_stderr


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="placet", description="Use a Placet from this machine.")
    commands = parser.add_subparsers(required=True, metavar="command")
    mcp = commands.add_parser(
        "mcp",
        help="be an MCP server on standard input and output, for clients that start their servers themselves",
        description="Speak MCP over standard input and output, and pass everything on to the /mcp of a Placet.",
    )
    mcp.add_argument("--url", required=True, help="where Placet is: https://placet.example, http://127.0.0.1:8000")
    mcp.add_argument("--key-file", type=Path, help="a file that holds the agent's key and nothing else")
    mcp.set_defaults(run=_mcp)
    chosen = parser.parse_args(arguments)
    return int(chosen.run(chosen))


def _mcp(chosen: argparse.Namespace) -> int:
    try:
        address, key = Address.parse(chosen.url), Key(chosen.key_file)
    except Unusable as error:
        log_to_stderr(str(error))
        return 2
    if key.is_open_to_others():
        log_to_stderr(f"{chosen.key_file} can be read by others on this machine; chmod 600 keeps the key yours")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the session is ended, too
    try:
        Relay(address, key, source=sys.stdin.buffer, sink=sys.stdout.buffer, log=log_to_stderr).run()
    except KeyboardInterrupt:
        return 130
    return 0
