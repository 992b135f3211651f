"""What the settings accept, what they refuse, and the keys they make."""

import base64
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env, keys
from config.address import Address

ROOT = Path(__file__).parents[2]
KEY = base64.b64encode(b"k" * 32).decode()
GIVEN = {
    "PLACET_PRODUCTION": "1",
    "PLACET_SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP",
    "PLACET_AUDIT_KEY": KEY,
    "PLACET_SEAL_SEED": KEY,
    "PLACET_SEALING_KEYS": f"k1:{KEY}",
    "ALLOWED_HOSTS": "placet.example.org",
    "DATABASE_URL": "postgres://placet@127.0.0.1:1/placet",
}


def start(home: Path, told: str = "PLACET_PRODUCTION", **environment: str) -> subprocess.CompletedProcess[str]:
    """Read the settings as a fresh process does, and tell one of them."""
    code = "import sys, django; django.setup(); from django.conf import settings; print(getattr(settings, sys.argv[1]))"
    return subprocess.run(
        [sys.executable, "-c", code, told],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PLACET_HOME": str(home), "DJANGO_SETTINGS_MODULE": "config.settings.local"}
        | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_production_starts_with_everything_given_and_makes_no_keys(tmp_path: Path) -> None:
    started = start(tmp_path, **GIVEN)
    assert (started.returncode, started.stdout.strip()) == (0, "True"), started.stderr
    assert not (tmp_path / "keys.json").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLACET_SECRET_KEY", ""),
        ("PLACET_SECRET_KEY", "changeme"),
        ("PLACET_SECRET_KEY", "a" * 60),
        ("PLACET_AUDIT_KEY", ""),
        ("PLACET_AUDIT_KEY", "c2hvcnQ="),
        ("PLACET_SEAL_SEED", "not base64!"),
        ("PLACET_SEALING_KEYS", ""),
        ("PLACET_SEALING_KEYS", "k1:c2hvcnQ="),
        ("ALLOWED_HOSTS", ""),
        ("ALLOWED_HOSTS", "*"),
        ("DATABASE_URL", ""),
        ("DATABASE_URL", "mysql://x"),
        ("PLACET_LEASE", "soon"),
    ],
)
def test_production_refuses_to_start_and_names_what_is_wrong(tmp_path: Path, name: str, value: str) -> None:
    started = start(tmp_path, **(GIVEN | {name: value}))
    assert started.returncode != 0
    assert name in started.stderr.splitlines()[-1]


def test_keys_are_made_once_random_and_for_this_user_alone(tmp_path: Path) -> None:
    first, again, other = keys.from_home(tmp_path), keys.from_home(tmp_path), keys.from_home(tmp_path / "other")
    assert first == again
    assert first.audit != other.audit
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600
    assert len({first.audit, first.seal_seed, *first.sealing.values()}) == 3
    assert base64.b64encode(first.audit).decode() not in repr(first)


def test_two_starts_at_once_agree_on_one_set_of_keys(tmp_path: Path) -> None:
    code = f"from pathlib import Path; from config import keys; print(keys.from_home(Path({str(tmp_path)!r})).django)"
    racing = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    told = {process.communicate(timeout=60)[0] for process in racing}
    assert told == {json.loads((tmp_path / "keys.json").read_text())["django"] + "\n"}


def test_a_command_says_in_one_line_why_it_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("{")
    (tmp_path / "keys.json").chmod(0o600)
    ran = subprocess.run(
        [sys.executable, "manage.py", "verify_audit"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PLACET_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"{tmp_path}/keys.json is damaged")


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("off", False), ("TRUE", True)])
def test_a_flag_reads_as_people_write_it(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    monkeypatch.setenv("PLACET_X", value)
    assert env.flag("PLACET_X", not expected) is expected


@pytest.mark.parametrize("value", ["maybe", "2"])
def test_a_flag_that_is_neither_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PLACET_X", value)
    with pytest.raises(ImproperlyConfigured, match="PLACET_X"):
        env.flag("PLACET_X", True)


def test_a_database_url_keeps_what_was_escaped() -> None:
    settings = env.database("postgres://us%40er:p%2Fw@db.example:5433/na%20me?sslmode=require")
    assert (settings["USER"], settings["PASSWORD"], settings["NAME"]) == ("us@er", "p/w", "na me")
    assert settings["OPTIONS"]["sslmode"] == "require"  # type: ignore[index]


@pytest.mark.parametrize("url", ["postgres://u:hunter2@127.0.0.1:abc/db", "postgres://[hunter2/db"])
def test_a_database_url_that_cannot_be_read_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL is not an address") as refusal:
        env.database(url)
    assert "hunter2" not in str(refusal.value)
    assert refusal.value.__suppress_context__  # the context repeats it


@pytest.mark.parametrize(
    "url", ["foo", "redis", "http://127.0.0.1", "memory://", "redis://127.0.0.1:abc/0", "redis://127.0.0.1;foo"]
)
def test_a_broker_that_nobody_can_reach_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", url)
    with pytest.raises(ImproperlyConfigured, match="CELERY_BROKER_URL"):
        env.broker("CELERY_BROKER_URL")


@pytest.mark.parametrize(
    "url",
    [
        *("filesystem://", "redis://:p%40ss@127.0.0.1:6379/0", "rediss://h", "redis+socket:///run/redis.sock"),
        *("sentinel://a:26379;sentinel://b:26379", "amqp://guest@h:5672//", "amqps://h/vhost", "pyamqp://h"),
    ],
)
def test_a_broker_of_a_known_kind_is_taken_as_it_is_written(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", url)
    assert env.broker("CELERY_BROKER_URL") == url
    monkeypatch.setenv("CELERY_BROKER_URL", "")
    assert env.broker("CELERY_BROKER_URL") == "filesystem://"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8124"),
        ("placet.example.org", "http://placet.example.org:8124"),
        ("fd00::7", "http://[fd00::7]:8124"),
        ("0.0.0.0", "http://127.0.0.1:8124"),
        ("::", "http://[::1]:8124"),
    ],
)
def test_an_address_is_told_as_a_browser_of_this_machine_takes_it(host: str, url: str) -> None:
    assert Address(host, 8124).url == url


def test_links_lead_to_where_the_web_listens_and_are_answered(tmp_path: Path) -> None:
    started = start(tmp_path, "PLACET_URL", HOST="fd00::7", PORT="8124")
    assert started.stdout.strip() == "http://[fd00::7]:8124", started.stderr
    assert "'[fd00::7]'" in start(tmp_path, "ALLOWED_HOSTS", HOST="fd00::7").stdout
    assert start(tmp_path, "PLACET_URL", HOST="").stdout.strip() == "http://127.0.0.1:8000"


def test_on_one_machine_a_new_sealing_key_can_be_put_in_front(tmp_path: Path) -> None:
    made = keys.from_home(tmp_path)
    own = base64.b64encode(made.sealing["k1"]).decode()
    code = "import django; django.setup(); from django.conf import settings; print(list(settings.PLACET_SEALING_KEYS))"
    command = [sys.executable, "-c", code]
    given = {
        "PATH": os.environ["PATH"],
        "PLACET_HOME": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "config.settings.local",
    }
    for extra, expected in (({}, "['k1']"), ({"PLACET_SEALING_KEYS": f"k2:{KEY},k1:{own}"}, "['k2', 'k1']")):
        told = subprocess.run(
            command, cwd=ROOT, env=given | extra, capture_output=True, text=True, timeout=60, check=True
        )
        assert told.stdout.strip() == expected
