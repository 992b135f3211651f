"""How a toolkit's code gets a process of its own: with Placet's package at hand and nothing else of its parent."""

import os
import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parent.parent)


def command(module: str, *arguments: str) -> list[str]:
    """The command line of a module of this package in a fresh interpreter of the same installation."""
    return [sys.executable, "-P", "-s", "-m", module, *arguments]


def environment(home: Path) -> dict[str, str]:
    """All that a toolkit's process learns from its surroundings; keys, addresses and passwords stay behind."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONPATH": ROOT,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def settle(folder: str) -> None:
    """Puts the toolkit's folder first on the import path, and takes off it the folder that Placet itself came from."""
    import site

    if ROOT in sys.path and ROOT not in site.getsitepackages():
        sys.path.remove(ROOT)
        os.environ.pop("PYTHONPATH", None)
    sys.path.insert(0, folder)
