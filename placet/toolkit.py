"""Toolkit: the name and version a folder of tools goes by, and the way from that folder to a manifest."""

import re
from pathlib import Path
from typing import Any

from placet.errors import ToolkitError
from placet.tool import NAME

_VERSION = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}", re.ASCII)


class Toolkit:
    """Names one toolkit version; a module of the toolkit's folder holds exactly one."""

    __slots__ = ("description", "name", "title", "version")

    def __init__(self, name: str, version: str, *, title: str | None = None, description: str | None = None) -> None:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ToolkitError(f"the toolkit's name {name!r} must be a letter, then letters, digits and underscores")
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            raise ToolkitError(f"the version {version!r} of {name} must be three whole numbers, such as 1.0.0")
        self.name = name
        self.version = version
        self.title = name if title is None else title
        self.description = description  # None: the docstring of the module says it

    def __repr__(self) -> str:
        return f"Toolkit({self.name!r}, {self.version!r})"


def collect(folder: Path | str, *, timeout: float = 30.0) -> dict[str, Any]:
    """The manifest of the Python tools in a folder, always the same for the same files; or ToolkitError.

    The toolkit's code is loaded in a process of its own, so that it neither sees nor disturbs this one.
    """
    import json
    from tempfile import TemporaryDirectory

    folder = Path(folder).resolve()
    if not folder.is_dir():
        raise ToolkitError(f"{folder} is not a folder")
    with TemporaryDirectory(prefix="placet-collect-") as home:
        code, output, errors = _load_apart(folder, Path(home), timeout)
    try:
        told = json.loads(output)
    except ValueError:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise ToolkitError(f"loading the tools in {folder} failed with code {code}: {last[0][:1000]}") from None
    if "error" in told:
        raise ToolkitError(told["error"])
    manifest: dict[str, Any] = told["manifest"]
    return manifest


def _load_apart(folder: Path, home: Path, timeout: float) -> tuple[int, bytes, bytes]:
    """Runs the collector over a folder; whatever it started ends with it."""
    import contextlib
    import os
    import signal
    import subprocess

    from placet import child

    with subprocess.Popen(
        child.command("placet.collector", "--folder", str(folder)),
        env=child.environment(home) | {"PYTHONHASHSEED": "0"},
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise ToolkitError(f"loading the tools in {folder} took longer than {timeout:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output, errors
