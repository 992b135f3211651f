"""`make run`: everything on one machine under one foreground process, which leaves nothing behind."""

from __future__ import annotations

import errno
import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config import env
from config.address import Address
from config.greeting import greeting
from config.reaper import PATIENCE, Reaper, end_groups
from config.stop import Stop
from config.supervisor import Program, Supervisor, say

ROOT = Path(__file__).resolve().parents[1]
READY_WITHIN = 60.0
# Threads share what they allocate from: by default each of the web's many would keep a share of its own.
SPARING = {"MALLOC_ARENA_MAX": "2"}
NOISE = (
    "Configuration allows spawning up to",  # granian about threads: ours mostly wait for a worker
    "UserWarning: No directory at:",  # whitenoise: without collected files it serves those of the packages
    "mw_instance = middleware(adapted_handler)",
    "No hostname was supplied. Reverting to default",  # the embedded broker has no host
    "worker: Warm shutdown",
)


class CannotStart(Exception):
    """Why there is nothing to serve; said in one line."""


def main() -> int:
    os.umask(0o077)  # what is made from here on, by us and by our children, is for this user alone
    stop = Stop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    try:
        home = env.folder("PLACET_HOME", ROOT / "var")
        address = Address(env.text("HOST", "") or "127.0.0.1", env.whole("PORT", 8000, at_least=1))
        home.mkdir(parents=True, exist_ok=True)
        lock = take_lock(home, address, stop)
        check_port(address)
        # The reaper holds the lock too: after a kill -9, the next start waits until the last one is cleaned up.
        reaper = Reaper(keep_open=[lock])
        try:
            return serve(home, address, reaper, stop)
        finally:
            reaper.close()
    except (CannotStart, ImproperlyConfigured) as error:
        say(f"Placet does not start: {error}")
        return 1
    except OSError as error:
        say(f"Placet does not start: {error.strerror or error}: {error.filename or ''}")
        return 1


def take_lock(home: Path, address: Address, stop: Stop) -> int:
    """One run per home. A lock whose holder is gone belongs to a run that is still being cleaned up: wait for that."""
    lock = os.open(home / "run.lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + PATIENCE + 5
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            holder = _read_json(home / "run.lock")
            if _is_alive(holder.get("pid")) or time.monotonic() > deadline:
                pid, url = holder.get("pid", "unknown"), holder.get("url", "an unknown address")
                raise CannotStart(f"it already runs with this home ({home}): process {pid}, {url}") from None
        if stop.wait(0.1):
            raise CannotStart("it was stopped")
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps({"pid": os.getpid(), "url": address.url}).encode(), 0)
    return lock


def check_port(address: Address) -> None:
    if address.port > 65535:
        raise CannotStart(f"PORT must be at most 65535, not {address.port}")
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(target)
    except socket.gaierror:
        raise CannotStart(f"HOST {address.host!r} is not an address of this machine") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CannotStart(
                f"port {address.port} on {address.host} is taken by another program; choose one: make run PORT=8001"
            ) from None
        raise CannotStart(f"cannot listen on {address.host} port {address.port}: {error.strerror}") from None


def serve(home: Path, address: Address, reaper: Reaper, stop: Stop) -> int:
    environment = {
        **SPARING,
        **os.environ,
        "PLACET_HOME": str(home),
        "HOST": address.host,
        "PORT": str(address.port),
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": os.environ.get("DJANGO_SETTINGS_MODULE") or "config.settings.local",
    }
    say("Preparing the database ...")
    facts = prepare(environment, address, reaper, stop)
    if facts is None:
        say("Stopped.")
        return 0
    supervisor = Supervisor(programs(home, address, environment, facts["threads"]), reaper)
    deadline = time.monotonic() + READY_WITHIN
    is_ready = False

    def greet_when_ready() -> bool:
        nonlocal is_ready
        if not is_ready and answers(address):
            is_ready = True
            say(greeting(home, address.url, facts))
        elif not is_ready and time.monotonic() > deadline:
            say(f"{address.url}/health did not answer 200 within {READY_WITHIN:.0f} s.")
            return False
        return True

    try:
        was_asked = supervisor.run(stop, greet_when_ready)
        say("Stopping ...")
    finally:
        supervisor.stop()
    say("Stopped.")
    return 0 if was_asked else 1


def prepare(environment: dict[str, str], address: Address, reaper: Reaper, stop: Stop) -> dict[str, Any] | None:
    """Migrate and load demo data, in a process of its own so that this one stays small; None if asked to stop."""
    process = subprocess.Popen(
        [sys.executable, "-m", "config.prepare", address.url],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    reaper.group(process.pid)
    while process.poll() is None:
        if stop.wait(0.05):
            end_groups([process.pid], poll=process.poll)
    reaper.forget_group(process.pid)
    assert process.stdout is not None
    with process.stdout as output:
        answer = output.read()
    if stop.is_set():
        return None
    if process.returncode:
        raise CannotStart("the preparation failed, see above")
    facts: dict[str, Any] = json.loads(answer)
    return facts


def programs(home: Path, address: Address, environment: dict[str, str], threads: int) -> list[Program]:
    web = ["granian", "--interface", "wsgi", "config.wsgi:application", "--host", address.host]
    web += ["--port", str(address.port), "--workers", "1", "--blocking-threads", str(threads), "--http", "1", "--no-ws"]
    # Backpressure counts connections, idle ones too: set as low as the threads, silent clients would shut others out.
    web += ["--backlog", "1024", "--backpressure", "1024", "--log-level", "warning", "--workers-kill-timeout", "5"]
    worker = ["celery", "--quiet", "-A", "config.celery", "worker", "--pool", "prefork", "--concurrency", "2"]
    worker += ["--beat", "--schedule", str(home / "beat-schedule"), "--loglevel", "WARNING"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    # Celery's warning about root fills a screen; ours is one line (see greeting).
    python = [sys.executable, "-W", "ignore:You're running the worker with superuser privileges", "-m"]
    return [
        Program(name=name, command=[*python, *command], environment=environment, folder=ROOT, noise=NOISE)
        for name, command in (("web", web), ("worker", worker))
    ]


def answers(address: Address) -> bool:
    connection = http.client.HTTPConnection(address.reachable_host, address.port, timeout=2)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_alive(pid: object) -> bool:
    if not isinstance(pid, int):
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


if __name__ == "__main__":
    sys.exit(main())
