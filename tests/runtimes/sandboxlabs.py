"""The toolkit Lab for the sandboxed runtimes: the same five tools as a module and as an image."""

import functools
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import wasmtime

TEXT = {"type": "string"}
VALUE = {"type": "object", "properties": {"value": TEXT}, "required": ["value"], "additionalProperties": False}
NOTHING = {"type": "object", "additionalProperties": False}


def toolkit(folder: Path, *tools: dict[str, Any], name: str = "Lab") -> None:
    """Writes a manifest with these tools."""
    manifest = {
        "apiVersion": "placet.dev/v1",
        "kind": "Toolkit",
        "metadata": {"name": name, "version": "1.0.0", "title": name, "description": "Made for tests."},
        "spec": {"tools": list(tools)},
    }
    (folder / "toolkit.json").write_text(json.dumps(manifest))


def tool(name: str, *, risk: str = "low", **runtime: Any) -> dict[str, Any]:
    return {
        "name": name,
        "title": name,
        "description": name,
        "risk": risk,
        "input": VALUE if name == "Echo" else NOTHING,
        "runtime": runtime,
    }


def wasm(folder: Path) -> None:
    (folder / "lab.wasm").write_bytes(wasmtime.wat2wasm((Path(__file__).parent / "wasm" / "lab.wat").read_text()))
    shared = {"type": "wasm", "module": "lab.wasm"}
    toolkit(
        folder,
        tool("Echo", **shared, entrypoint="echo"),
        tool("Fail", **shared, entrypoint="fail"),
        tool("Hang", **shared, entrypoint="hang", fuel=10**15),
        tool("Die", **shared, entrypoint="die"),
        tool("Flood", **shared, entrypoint="flood"),
    )


@functools.cache
def image() -> str:
    """An image with nothing but busybox in it, made without a registry and named by its digest."""
    applets = ("cat", "env", "head", "id", "ip", "ls", "mount", "sed", "sh", "sleep", "touch", "tr", "yes")
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add("/bin/busybox", "bin/busybox", filter=_plain)
        for applet in applets:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    name = "localhost/placet-tests"
    _podman("import", "--quiet", "-", f"{name}:latest", given=layer.getvalue())
    digest = _podman("image", "inspect", "--format", "{{.Digest}}", f"{name}:latest").strip()
    return f"{name}@{digest}"


def container(folder: Path) -> None:
    # The request is one line of compact JSON, so a pattern finds the value in it; a tool of your own will parse it.
    echo = r"""sed -n 's/.*"input":{"value":\("[^}]*"\)}.*/{"status":"ok","output":{"result":\1}}/p'"""
    error = {
        "code": "execution_failed",
        "message": "No such thing",
        "retryable": True,
        "details": {"retry_after_ms": 5},
    }
    toolkit(
        folder,
        shell("Echo", echo),
        shell("Fail", f"echo '{json.dumps({'status': 'error', 'error': error})}'"),
        shell("Hang", "trap '' TERM INT HUP; while :; do sleep 60; done"),
        shell("Die", "exit 3"),
        shell("Flood", "head -c 100000 /dev/zero | tr '\\0' x"),
    )


def shell(name: str, script: str, **limits: Any) -> dict[str, Any]:
    """A container tool that is one shell script."""
    return tool(name, type="container", image=image(), command=["sh", "-c", script], **limits)


def _podman(*words: str, given: bytes = b"") -> str:
    return subprocess.run(["podman", *words], input=given, capture_output=True, check=True, timeout=60).stdout.decode()


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mode = 0o755
    return info
