"""Secrets that lie elsewhere: in the environment, in a mounted folder, in Vault."""

import os
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from execution import secrets, secretsources, secretstore
from execution.errors import CallError, ErrorCode
from execution.models import Secret
from execution.secretsources import SourceError
from execution.secretstore import SecretError
from execution.secretvalues import from_json
from tests.execution.secretkit import BEARER, VALUE, Loopback, sender

pytestmark = pytest.mark.django_db


def elsewhere(source: str, name: str = "search-key", path: str = "") -> Secret:
    return secretstore.create(name, None, actor="shell", source=source, path=path)


def find(secret: Secret) -> Any:
    return secretsources.find(secret, time.monotonic() + 5)


def missing(secret: Secret) -> SourceError:
    with pytest.raises(SourceError) as caught:
        find(secret)
    assert VALUE not in str(caught.value)
    return caught.value


# The environment


def test_a_secret_in_the_environment_is_found_under_its_upper_snake_name(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = elsewhere("env", "search/api.key-2")
    missing(secret)
    monkeypatch.setenv("PLACET_SECRET_SEARCH_API_KEY_2", VALUE)
    found = find(secret)
    assert found.values == {"value": VALUE}
    assert VALUE not in repr(found)


def test_a_json_object_in_the_environment_has_keys_and_another_value_another_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = elsewhere("env")
    monkeypatch.setenv("PLACET_SECRET_SEARCH_KEY", '{"client_id": "a", "client_secret": "b"}')
    before = find(secret)
    assert before.values == {"client_id": "a", "client_secret": "b"}
    monkeypatch.setenv("PLACET_SECRET_SEARCH_KEY", '{"client_id": "a", "client_secret": "c"}')
    assert find(secret).version != before.version


@pytest.mark.parametrize("text", ["", "  \n", '{"a": 1}'])
def test_an_empty_or_odd_variable_is_no_secret(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PLACET_SECRET_SEARCH_KEY", text)
    missing(elsewhere("env"))


def test_no_name_leads_to_a_setting_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("key", "KEY", "-key-".strip("-"), "files", "_key"):
        with pytest.raises(SecretError, match="setting of Placet"):
            elsewhere("env", name)
    monkeypatch.setenv("PLACET_SECRET_KEY", VALUE)
    missing(Secret.objects.create(name="key", source="env"))  # even if a row says so


def test_a_value_outside_that_cannot_be_masked_or_sent_is_refused_when_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere("env")
    tool = sender(BEARER)
    for text, code in (
        ("tiny-7", ErrorCode.SECRET_UNRESOLVED),
        ("password123", ErrorCode.SECRET_UNRESOLVED),
        ("one-line\r\nX-Evil: yes", ErrorCode.RUNTIME_INVALID),
        ("euro-€-euro-€", ErrorCode.RUNTIME_INVALID),
    ):
        monkeypatch.setenv("PLACET_SECRET_SEARCH_KEY", text)
        with pytest.raises(CallError) as caught:
            secrets.resolve(tool)
        assert caught.value.code is code
        assert text not in repr(caught.value.failure)


# Files


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    inside = tmp_path / "mounted"
    inside.mkdir()
    settings.PLACET_SECRET_FILES = str(inside)
    return inside


def test_a_file_is_read_anew_each_time(folder: Path) -> None:
    secret = elsewhere("file")
    missing(secret)
    (folder / "search-key").write_text(f"{VALUE}\n")
    assert find(secret).values == {"value": VALUE}
    (folder / "search-key").write_text("a-newer-value-2")
    assert find(secret).values == {"value": "a-newer-value-2"}


def test_a_link_inside_the_folder_is_followed_as_mounted_volumes_need_it(folder: Path) -> None:
    (folder / "..2026").mkdir()
    (folder / "..2026" / "search-key").write_text(VALUE)
    (folder / "..data").symlink_to("..2026")
    (folder / "search-key").symlink_to("..data/search-key")
    assert find(elsewhere("file")).values == {"value": VALUE}


def test_no_link_leads_out_of_the_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text(VALUE)
    (folder / "search-key").symlink_to("../outside")
    assert "leads out" in str(missing(elsewhere("file")))
    (folder / "deep").symlink_to("..")
    assert "leads out" in str(missing(elsewhere("file", "deep/outside")))


def test_names_that_are_paths_are_no_names(folder: Path) -> None:
    for name in ("../outside", "/etc/passwd", "a/../b", "a//b", "..", ".hidden", "a\0b", "a\n"):
        with pytest.raises(SecretError):
            elsewhere("file", name)
        missing(Secret(name=name.replace("\0", "x"), source="file"))  # even if a row said so


def test_what_is_not_an_ordinary_small_file_is_refused_without_waiting(folder: Path) -> None:
    secret = elsewhere("file")
    (folder / "search-key").mkdir()
    missing(secret)
    (folder / "search-key").rmdir()
    os.mkfifo(folder / "search-key")
    missing(secret)
    (folder / "search-key").unlink()
    (folder / "search-key").symlink_to("search-key")
    missing(secret)
    (folder / "search-key").unlink()
    (folder / "search-key").write_bytes(b"x" * 300_000)
    missing(secret)
    (folder / "search-key").write_bytes(b"\xff" * 10)
    missing(secret)


def test_without_a_folder_there_are_no_files(settings: Any) -> None:
    settings.PLACET_SECRET_FILES = ""
    missing(elsewhere("file"))


# Vault


class Vault(Loopback):
    """A server that speaks the reading half of the KV engine, version 2."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[dict[str, Any], int]] = {}
        self.token = "vault-token-77"
        self.broken: tuple[int, Any] | None = None
        super().__init__(self._answer)

    def _answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        if self.broken is not None:
            return self.broken
        if request.headers.get("X-Vault-Token") != self.token:
            return 403, {"errors": ["permission denied"]}
        path = request.path.removeprefix("/v1/secret/data/")
        if request.command != "GET" or path not in self.kept:
            return 404, {"errors": []}
        texts, version = self.kept[path]
        return 200, {"request_id": "r", "data": {"data": texts, "metadata": {"version": version, "destroyed": False}}}


@pytest.fixture
def vault(settings: Any) -> Iterator[Vault]:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    settings.PLACET_VAULT_MOUNT = "secret"
    with Vault() as started:
        settings.PLACET_VAULT_ADDR = f"{started.url}/"
        settings.PLACET_VAULT_TOKEN, settings.PLACET_VAULT_TOKEN_FILE = started.token, ""
        yield started


def test_a_secret_in_vault_is_found_by_its_name_or_its_path(vault: Vault) -> None:
    vault.kept = {"search-key": ({"value": VALUE}, 3), "team/app": ({"client_id": "a", "client_secret": VALUE}, 1)}
    assert secrets.resolve(sender(BEARER | {"secretRef": elsewhere("vault").name})).needles == {"search-key": VALUE}
    assert find(elsewhere("vault", "app", "team/app")).values == {"client_id": "a", "client_secret": VALUE}
    assert [path for path, _, _ in vault.asked] == ["/v1/secret/data/search-key", "/v1/secret/data/team/app"]
    assert all(headers["x-vault-request"] == "true" for _, headers, _ in vault.asked)


def test_vault_is_asked_each_time_and_its_version_tells_values_apart(vault: Vault) -> None:
    secret = elsewhere("vault")
    vault.kept["search-key"] = ({"value": VALUE}, 3)
    before = find(secret)
    vault.kept["search-key"] = ({"value": "a-newer-value-2"}, 4)
    after = find(secret)
    assert after.values == {"value": "a-newer-value-2"}
    assert before.version != after.version


def test_the_token_can_lie_in_a_file_that_is_renewed(vault: Vault, settings: Any, tmp_path: Path) -> None:
    vault.kept["search-key"] = ({"value": VALUE}, 1)
    secret, file = elsewhere("vault"), tmp_path / "token"
    settings.PLACET_VAULT_TOKEN, settings.PLACET_VAULT_TOKEN_FILE = "", str(file)
    assert "cannot be read" in str(missing(secret))
    file.write_text("stale-token\n")
    assert not missing(secret).can_retry
    file.write_text(f"{vault.token}\n")
    assert find(secret).values == {"value": VALUE}


@pytest.mark.parametrize(
    ("answer", "can_retry"),
    [
        ((403, b""), False),
        ((404, {"errors": []}), False),
        ((400, b""), False),
        ((429, b""), True),
        ((503, {"errors": ["Vault is sealed"]}), True),
        ((500, b""), True),
        ((200, b"<html>"), False),
        ((200, {"data": {"value": VALUE}}), False),  # the KV engine of version 1
        ((200, {"data": {"data": None, "metadata": {"version": 2}}}), False),  # a deleted version
        ((200, b'{"data": ' + b"[" * 90_000), False),
        ((307, b""), False),
    ],
)
def test_vault_in_trouble_is_told_apart_from_a_missing_secret(
    vault: Vault, answer: tuple[int, Any], can_retry: bool
) -> None:
    vault.broken = answer
    assert missing(elsewhere("vault")).can_retry is can_retry


def test_a_vault_that_is_not_set_up_not_there_or_not_allowed(vault: Vault, settings: Any) -> None:
    secret = elsewhere("vault")
    settings.PLACET_EGRESS_ALLOW = []
    assert "PLACET_EGRESS_ALLOW" in str(missing(secret))
    assert vault.asked == []
    settings.PLACET_VAULT_TOKEN = ""
    missing(secret)
    settings.PLACET_VAULT_ADDR = ""
    assert "PLACET_VAULT_ADDR" in str(missing(secret))


def test_numbers_in_vault_are_not_texts(vault: Vault) -> None:
    vault.kept["search-key"] = ({"value": 12345678}, 1)
    elsewhere("vault")
    with pytest.raises(CallError) as caught:
        secrets.resolve(sender(BEARER))
    assert caught.value.code is ErrorCode.SECRET_UNRESOLVED


def test_a_secret_that_lies_elsewhere_takes_no_value_here() -> None:
    secret = elsewhere("env")
    with pytest.raises(SecretError):
        secretstore.add_version(secret, from_json(VALUE), actor="shell")
    with pytest.raises(SecretError):
        secretstore.create("other", from_json(VALUE), actor="shell", source="env")
    assert not secret.versions.exists()
