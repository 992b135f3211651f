"""Services that answer with the worst that still looks like an answer, each in the words of its protocol."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import wasmtime

from tests.runtimes.wasm import modules
from tests.services.grpcserver import GrpcServer, grpcserver
from tests.services.mcpserver import FakeMcp
from tests.services.toolserver import Session, answer, endless, toolserver

HUGE = 1 << 30
KEYS = 50_000

# JSON that is small enough to be read to its end, and as unpleasant as it can be.
SMALL: dict[str, Callable[[], str]] = {
    "text": lambda: f'"{"x" * 900_000}"',
    "escapes": lambda: f'"{chr(92)}u00e9{(chr(92) + "u00e9") * 150_000}"',
    "deep": lambda: "[" * 400_000 + "]" * 400_000,
    "deep objects": lambda: '{"a":' * 150_000 + "1" + "}" * 150_000,
    "many": lambda: f"[{'0,' * 400_000}0]",
    "keys": lambda: "{" + ",".join(f'"key{n}":"v"' for n in range(KEYS)) + "}",
    "digits": lambda: "1" * 900_000,
    "secrets": lambda: f'["{"password=hunter2hunter2 Bearer abcdefgh12345678 " * 15_000}"]',
}
# Answers that are cut, wherever they would have ended.
LARGE = ("endless", "long", "bomb")


def enveloped(text: str) -> str:
    return f'{{"status":"ok","output":{{"result":{text}}}}}'


def bomb() -> bytes:
    """Ten megabytes that are ten gigabytes once unpacked: one packed piece over and over, and no end."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    piece = packer.compress(b"\0" * 1_000_000) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + piece * 10_000


BOMB = bomb()


def says(session: Session, kind: str, text: Callable[[str], str]) -> None:
    """This kind of answer on an HTTP connection."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    match kind:
        case "endless":
            endless(head + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"[" * 65_536 + b"\r\n")(session)
        case "long":
            endless(head + f"Content-Length: {HUGE}\r\n\r\n".encode(), b"[" * 65_536)(session)
        case "bomb":
            session.say(head + f"Content-Encoding: gzip\r\nContent-Length: {len(BOMB)}\r\n\r\n".encode(), BOMB)
        case _:
            answer(text(SMALL[kind]()), kind="application/json")(session)


def plain(session: Session) -> None:
    says(session, session.asked.json["kind"], str)


def contract(session: Session) -> None:
    says(session, session.asked.json["input"]["kind"], enveloped)


def upstream(server: FakeMcp, session: Session, asked: Any) -> None:
    def told(text: str) -> str:
        id = json.dumps(asked["id"])
        return f'{{"jsonrpc":"2.0","id":{id},"result":{{"structuredContent":{{"result":{text}}}}}}}'

    says(session, asked["params"]["arguments"]["kind"], told)


async def remote(server: GrpcServer, stream: Any, asked: Any) -> None:
    kind = asked["input"]["kind"]
    await stream.send_message(enveloped(SMALL[kind]()).encode() if kind in SMALL else b"[" * 64_000_000)


def talker() -> bytes:
    """A module that writes without end."""
    return bytes(
        wasmtime.wat2wasm(
            f"""(module {modules.wasi("fd_write")} (memory (export "memory") 3)
            (func (export "run")
              (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 131072))
              (loop $again
                (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))) (br $again))))"""
        )
    )


@contextmanager
def services() -> Iterator[dict[str, dict[str, Any]]]:
    """Every hostile service, listening; the runtime binding by the name of its tool."""
    with ExitStack() as stack:
        web = stack.enter_context(toolserver())
        web.answers |= {"/plain": plain, "/contract": contract}
        other = FakeMcp(stack.enter_context(toolserver()))
        other.call = upstream
        grpc = stack.enter_context(grpcserver(remote))
        yield {
            "Http": {"type": "http", "endpoint": f"{web.url}/plain"},
            "External": {"type": "external", "endpoint": f"{web.url}/contract"},
            "Webhook": {"type": "webhook-callback", "endpoint": f"{web.url}/contract"},
            "Mcp": {"type": "mcp", "endpoint": other.endpoint, "tool": "thing"},
            "Grpc": {"type": "grpc", "endpoint": f"grpc://127.0.0.1:{grpc.port}"},
        }


def write(folder: Path, name: str, runtimes: dict[str, dict[str, Any]], **files: bytes) -> Path:
    """The manifest of a toolkit with a tool for each runtime, and what lies beside it."""
    folder.mkdir()
    for file, content in files.items():
        (folder / f"{file}.wasm").write_bytes(content)
    tools = [
        {
            "name": tool,
            "description": "Answers badly.",
            "idempotency": "read",
            "input": {"type": "object", "properties": {"kind": {"type": "string"}}},
            "runtime": {**runtime, "timeout": "20s"},
        }
        for tool, runtime in runtimes.items()
    ]
    manifest = {"apiVersion": "placet.dev/v1", "kind": "Toolkit", "metadata": {"name": name, "version": "1.0.0"}}
    (folder / "toolkit.json").write_text(json.dumps({**manifest, "spec": {"tools": tools}}))
    return folder
