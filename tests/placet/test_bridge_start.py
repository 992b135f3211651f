"""What the bridge is started with, and what it makes of it."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from placet.bridge.address import Address, Unusable
from placet.bridge.headers import Mirrored, encoded
from tests.placet.stub import (
    KEY,
    ROOT,
)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://x", "must be written https://"),
        ("http://placet.example", "a key would travel unprotected"),
        ("https://me:pw@placet.example", "must hold no user"),
        ("https://placet.example/mcp?key=1", "must hold no user, no query"),
        ("https://placet.example:port", "not an address that can be read"),
        ("placet.example", "must be written https://"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_at_the_start(url: str, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        Address.parse(url)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("https://placet.example", "https://placet.example:443/mcp"),
        ("http://localhost:8000/", "http://localhost:8000/mcp"),
        ("http://[::1]:8000/tools/mcp", "http://[::1]:8000/tools/mcp"),
    ],
)
def test_an_address_without_a_path_means_its_mcp(url: str, meant: str) -> None:
    assert str(Address.parse(url)) == meant


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), (b"\n", "one key and nothing else"), (b"a\nb", "one key"), (b"\xff", "one")],
)
def test_a_key_file_that_holds_no_key_is_refused_at_the_start(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    command = [sys.executable, "-m", "placet", "mcp", "--url", "http://127.0.0.1:1", "--key-file", str(path)]
    ran = subprocess.run(command, cwd=ROOT, input=b"", capture_output=True, timeout=30)
    assert ran.returncode == 2
    assert ran.stdout == b""
    assert said in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == 1


def test_a_key_that_others_can_read_is_warned_about(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(KEY)
    os.chmod(path, 0o644)
    command = [sys.executable, "-m", "placet", "mcp", "--url", "http://127.0.0.1:1", "--key-file", str(path)]
    ran = subprocess.run(command, cwd=ROOT, input=b"", capture_output=True, timeout=30)
    assert ran.returncode == 0
    assert "can be read by others" in ran.stderr.decode()


@pytest.mark.parametrize(
    "value", ["plain text", "Mail_Send", "=?base64", "a\tb", " padded", "=?base64?eA==?=", "", "é"]
)
def test_header_values_survive_the_way(value: str) -> None:
    written = encoded(value)
    assert written.isascii()
    assert written == written.strip()
    wrapped = written.startswith("=?base64?") and written.endswith("?=")
    read = base64.b64decode(written[9:-2]).decode() if wrapped else written
    assert read == value


def test_the_bridge_uses_nothing_but_the_standard_library() -> None:
    code = "import sys, placet.cli; print(*{m.split('.')[0] for m in sys.modules})"
    ran = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0, ran.stderr
    foreign = {name for name in ran.stdout.split() if name not in sys.stdlib_module_names} - {"placet", "__main__"}
    assert {name for name in foreign if not name.startswith("_")} == set()


def test_a_parameter_that_is_wrong_type_is_left_to_the_server() -> None:
    mirrored: Any = Mirrored()
    nonsenses: list[Any] = [
        None,
        [],
        {"tools": None},
        {"tools": [1, {"name": 2}, {"name": "a", "inputSchema": {"properties": 3}}]},
    ]
    for nonsense in nonsenses:
        mirrored.learn(nonsense)
    mirrored.learn({"tools": [{"name": "b", "inputSchema": {"properties": {"x": {"x-mcp-header": "bad name"}}}}]})
    assert mirrored.headers({"name": "b", "arguments": {"x": "1"}}) == {}
    assert mirrored.headers({"name": "a", "arguments": None}) == {}
