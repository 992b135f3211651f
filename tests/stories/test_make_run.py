"""What `make run` starts: ready soon, its secrets its own, its call to copy true, and nothing left behind."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.services.server import free_port
from tests.stories.product import Product, processes_in, wait_until

pytestmark = pytest.mark.story

REFUND = '"order": "A-7", "amount": 5'


@pytest.fixture
def database(database_url: str) -> Iterator[dict[str, str]]:
    """A database of the product's own on the server of this run; without a server, the SQLite file in its home."""
    if not database_url:
        yield {}
        return
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE story")
        yield {"DATABASE_URL": database_url.rpartition("/")[0] + "/story"}
        connection.execute("DROP DATABASE story WITH (FORCE)")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home; whatever a failed test left running in it is ended."""
    home = tmp_path / "home"
    yield home
    for pid in processes_in(home):
        subprocess.run(["kill", "-9", str(pid)], check=False)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A folder for temporary files that are this product's alone."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return scratch


@pytest.mark.needs("curl")
def test_a_newcomer_starts_calls_stops_and_starts_again(home: Path, database: dict[str, str], scratch: Path) -> None:
    begin = time.monotonic()
    product = Product(home, environment=database | {"TMPDIR": str(scratch)}).ready()
    assert time.monotonic() - begin < 60
    demo = json.loads((home / "demo.json").read_text())
    key, password = demo["agents"][0]["key"], demo["admin"]["password"]
    assert demo["url"] == f"http://127.0.0.1:{product.port}"
    assert product.output.count(password) == 1
    assert key in product.output

    answer = run(product.command())
    assert answer["result"]["value"] == 5

    second = Product(home, port=free_port())
    second.wait_for("already runs")
    assert second.process.wait() == 1
    assert f"process {product.process.pid}" in second.output
    assert demo["url"] in second.output

    queued = product.command().replace("Calculator.Add", "Payments.Refund").replace('"a": 2, "b": 3', REFUND)
    assert run(queued)["result"]["value"]["booked"] == "refund"
    last = run(product.command())["result"]["call_id"]
    assert len(list(scratch.glob("placet-hosts-*"))) == 2  # the web's and a worker's
    assert product.finish(signal.SIGTERM) == 0
    assert product.processes() == {}
    assert list(scratch.iterdir()) == []
    assert "Traceback" not in product.output
    assert f'"tool_request_id":"{last}"' in product.output  # what is told a moment later is told before the end
    modes = {path.name: path.stat().st_mode & 0o777 for path in [home, *home.iterdir()]}
    assert {name for name, mode in modes.items() if mode & 0o077} == set()
    assert modes["demo.json"] == modes["keys.json"] == 0o600

    again = Product(home, port=product.port, environment=database).ready()
    assert json.loads((home / "demo.json").read_text()) == demo
    assert key not in again.output
    assert password not in again.output
    assert str(home / "demo.json") in again.output
    assert run(again.command())["result"]["value"] == 5
    assert len(get(again, "/api/calls/", key)["results"]) == 4
    assert again.finish(signal.SIGINT) == 0
    assert again.processes() == {}


def test_a_killed_product_takes_its_children_along_and_can_be_started_at_once(home: Path) -> None:
    product = Product(home).ready()
    assert len(product.processes()) > 3
    assert product.finish(signal.SIGKILL) == -signal.SIGKILL
    again = Product(home, port=product.port).ready()
    assert again.finish() == 0
    assert wait_until(lambda: product.processes() == {}), product.processes()


def test_a_web_process_that_dies_is_started_again(home: Path) -> None:
    product = Product(home).ready()
    web = [pid for pid, command in product.processes().items() if "granian" in command]
    subprocess.run(["kill", "-9", str(min(web))], check=True)
    product.wait_for("web was killed by signal 9; starting it again")
    assert wait_until(lambda: status(product.port, "/health") == 200)
    assert product.finish() == 0
    assert product.processes() == {}


def test_a_taken_port_is_said_and_nothing_is_started(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        product = Product(home, port=other.getsockname()[1])
        assert product.process.wait(timeout=30) == 1
        product.wait_for("is taken by another program")
    assert not (home / "demo.json").exists()
    assert product.processes() == {}


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"PORT": "eighty"}, "PORT must be a number"),
        ({"PORT": "99999"}, "PORT must be at most 65535"),
        ({"HOST": "no.such.host.invalid"}, "HOST 'no.such.host.invalid' is not an address of this machine"),
        ({"PLACET_PRODUCTION": "1"}, "PLACET_SECRET_KEY is not set"),
        ({"DATABASE_URL": "mysql://x/y"}, "DATABASE_URL must begin with"),
        ({"DATABASE_URL": "postgres://u:p@127.0.0.1:abc/db"}, "DATABASE_URL is not an address that can be read"),
        ({"CELERY_BROKER_URL": "foo"}, "CELERY_BROKER_URL must begin with one of redis://"),
        ({"PLACET_ANONYMOUS_AGENT": "demo", "HOST": "0.0.0.0"}, "HOST must be a loopback address"),
        ({"PLACET_JWKS": "/no/such/keys", "PLACET_JWT_ISSUERS": "https://x"}, "The file of PLACET_JWKS cannot be used"),
        ({"PLACET_HOOKS": "no.such.hook"}, "no.such.hook"),
    ],
)
def test_a_bad_setting_is_named_and_nothing_is_started(home: Path, environment: dict[str, str], reason: str) -> None:
    product = Product(home, environment=environment)
    assert product.process.wait(timeout=30) == 1
    product.wait_for(reason)
    assert "Traceback" not in product.output
    assert not (home / "demo.json").exists()
    assert product.processes() == {}


def test_a_home_that_lost_its_keys_is_not_given_new_ones(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "placet.sqlite3").write_bytes(b"what was made under the old keys")
    product = Product(home, environment={"DATABASE_URL": ""})
    assert product.process.wait(timeout=30) == 1
    product.wait_for(f"{home}/keys.json is not there, but its database holds data already")
    assert "Traceback" not in product.output
    assert not (home / "keys.json").exists()


def run(command: str) -> Any:
    """A printed command, typed into a shell."""
    return json.loads(subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout)


def get(product: Product, path: str, key: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=10)
    connection.request("GET", path, headers={"OXP-API-Key": key})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert response.status == 200, body
    return json.loads(body)


def status(port: int, path: str) -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()
