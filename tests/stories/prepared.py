"""Prepared: a home and a database as a first start leaves them, with the lab; each laboratory begins with a copy."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg

from tests.stories.product import ROOT

LAB = ROOT / "tests" / "toolkits" / "lab"
TEMPLATE = "laboratory_template"
IMPORT = """
import django; django.setup()
from django.core.management import call_command
call_command("import_toolkit", sys.argv[1], publish=True, reviewer="admin", verbosity=0, stdout=sys.stderr)
call_command("create_agent", "tester", call=["Lab"], json=True)
"""


class Prepared:
    """What a first start makes is the same for every laboratory, so one start serves all of a run."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self._home = folder / "home"
        self._key = folder / "key"
        self._server = database_url
        folder.mkdir(exist_ok=True)
        with (folder / "lock").open("w") as lock:  # the processes of a parallel run share what the first one made
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._key.exists():
                self._make()

    @property
    def key(self) -> str:
        """The key of the agent that calls the lab's tools."""
        return self._key.read_text()

    def furnish(self, home: Path) -> None:
        """Everything the first start wrote into its home, SQLite's file among it."""
        shutil.copytree(self._home, home)

    @contextmanager
    def database(self) -> Iterator[str]:
        """The address of a copy on the run's server."""
        with psycopg.connect(self._server, autocommit=True) as connection:
            name = f"laboratory_{uuid4().hex}"  # several stories are told at a time
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{TEMPLATE}"')
            yield _on(self._server, name)
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    def _make(self) -> None:
        environment: dict[str, str] = {}
        if self._server:
            with psycopg.connect(self._server, autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{TEMPLATE}"')
            environment["DATABASE_URL"] = _on(self._server, TEMPLATE)
        self._home.mkdir(mode=0o700)
        run([sys.executable, "-m", "config.prepare", "http://127.0.0.1"], self._home, environment)
        self._key.write_text(import_lab(self._home, environment))


def import_lab(home: Path, environment: Mapping[str, str]) -> str:
    """The lab for a home that has been prepared, and the key of an agent that calls its tools."""
    told = run([sys.executable, "-c", f"import sys\n{IMPORT}", str(LAB)], home, environment)
    return str(json.loads(told)["key"])


def run(command: list[str], home: Path, environment: Mapping[str, str]) -> str:
    """A program beside the product, with its settings; what it printed."""
    own = {"PLACET_HOME": str(home), "DJANGO_SETTINGS_MODULE": "config.settings.local"}
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment, **own}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _on(server: str, name: str) -> str:
    return f"{server.rpartition('/')[0]}/{name}"
