"""The files of a toolkit travel as one bundle whose name says what is in it."""

import os
import threading
import time
from pathlib import Path

import pytest
from django.conf import LazySettings

from registry import sources
from registry.models import Source, Toolkit
from registry.sources import SourceError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "toolkit"
    (folder / "inner").mkdir(parents=True)
    (folder / "calculator.py").write_text("def add(a, b): return a + b\n")
    (folder / "inner" / "__init__.py").write_text("")
    (folder / "inner" / "data.json").write_text("{}")
    return folder


@pytest.fixture
def home(tmp_path: Path, settings: LazySettings) -> Path:
    settings.PLACET_HOME = tmp_path / "home"
    return tmp_path / "home"


def test_caches_hidden_files_and_manifests_are_left_out(folder: Path) -> None:
    expected = {"calculator.py", "inner/__init__.py", "inner/data.json"}
    digest = sources.digest_of(sources.files_of(folder))
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "calculator.pyc").write_bytes(b"x")
    (folder / ".env").write_text("SECRET=1")
    (folder / ".git").mkdir()
    (folder / "1.0.0.yaml").write_text("# the first\napiVersion: placet.dev/v1\nkind: Toolkit\n")
    (folder / "2.0.0.json").write_text('{"kind": "Toolkit", "apiVersion": "placet.dev/v1"}')
    assert set(sources.files_of(folder)) == expected
    assert sources.digest_of(sources.files_of(folder)) == digest


def test_other_data_files_belong_to_the_code(folder: Path) -> None:
    (folder / "cities.yaml").write_text("- Paris\n")
    (folder / "policy.yaml").write_text("apiVersion: placet.dev/v1\nkind: Policy\n")
    assert {"cities.yaml", "policy.yaml"} <= set(sources.files_of(folder))


def test_looking_for_manifests_is_quick_in_files_full_of_blank_lines(folder: Path) -> None:
    (folder / "blank.yaml").write_bytes(b" \n" * 1_000_000)
    start = time.process_time()
    sources.files_of(folder)
    assert time.process_time() - start < 1


def test_the_name_depends_on_names_and_contents_only(folder: Path) -> None:
    before = sources.digest_of(sources.files_of(folder))
    os.utime(folder / "calculator.py", (1, 1))
    (folder / "calculator.py").chmod(0o600)
    assert sources.digest_of(sources.files_of(folder)) == before
    (folder / "calculator.py").write_text("def add(a, b): return a - b\n")
    assert sources.digest_of(sources.files_of(folder)) != before


def test_a_link_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "passwords").symlink_to("/etc/passwd")
    with pytest.raises(SourceError, match="symbolic link"):
        sources.files_of(folder)


def test_a_link_to_a_folder_is_refused(folder: Path) -> None:
    (folder / "everything").symlink_to("/")
    with pytest.raises(SourceError, match="symbolic link"):
        sources.files_of(folder)


def test_a_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(SourceError, match="neither a file nor a folder"):
        sources.files_of(folder)


def test_too_many_or_too_large_files_are_refused(folder: Path) -> None:
    (folder / "large.bin").write_bytes(b"x" * (sources.MAX_BYTES + 1))
    with pytest.raises(SourceError, match="bytes"):
        sources.files_of(folder)
    (folder / "large.bin").unlink()
    for number in range(sources.MAX_FILES):
        (folder / f"{number}.txt").touch()
    with pytest.raises(SourceError, match="files"):
        sources.files_of(folder)


@pytest.mark.django_db
def test_a_bundle_is_unpacked_once_and_read_only(folder: Path, home: Path) -> None:
    source = sources.keep(Toolkit.objects.create(name="Calculator"), sources.files_of(folder))
    unpacked = sources.unpack(source.digest)
    assert sources.files_of(unpacked) == sources.files_of(folder)
    assert unpacked == home / "sources" / source.digest.removeprefix("sha256:")
    assert (unpacked / "calculator.py").stat().st_mode & 0o777 == 0o444
    assert unpacked.stat().st_mode & 0o777 == 0o555
    assert sources.unpack(source.digest) == unpacked


@pytest.mark.django_db
def test_the_same_bundle_is_kept_once_per_toolkit(folder: Path) -> None:
    toolkit = Toolkit.objects.create(name="Calculator")
    files = sources.files_of(folder)
    assert sources.keep(toolkit, files) == sources.keep(toolkit, files)
    sources.keep(Toolkit.objects.create(name="Other"), files)
    assert Source.objects.count() == 2


@pytest.mark.django_db
def test_many_who_unpack_at_once_get_one_whole_folder(
    folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = sources.keep(Toolkit.objects.create(name="Calculator"), sources.files_of(folder))
    content, together, failures = bytes(source.content), threading.Barrier(8), []
    monkeypatch.setattr(sources, "Source", _Shelf(content))

    def unpack() -> None:
        together.wait(5)
        try:
            assert sources.files_of(sources.unpack(source.digest)) == sources.files_of(folder)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=unpack) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert failures == []
    assert [path.name for path in (home / "sources").iterdir()] == [source.digest.removeprefix("sha256:")]


@pytest.mark.django_db
def test_an_altered_bundle_is_not_unpacked(folder: Path, home: Path) -> None:
    toolkit = Toolkit.objects.create(name="Calculator")
    other = sources._packed({"calculator.py": b"import os"})
    digest = sources.digest_of(sources.files_of(folder))
    Source.objects.create(toolkit=toolkit, digest=digest, content=other, size=len(other))
    with pytest.raises(SourceError, match="altered"):
        sources.unpack(digest)
    assert not (home / "sources").exists()


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil", "a/../../evil", "a\\..\\evil", "folder/"])
@pytest.mark.django_db
def test_a_bundle_that_leads_out_of_its_folder_is_not_unpacked(name: str, home: Path) -> None:
    files = {name: b"x"}
    content = sources._packed(files)
    toolkit = Toolkit.objects.create(name="Calculator")
    Source.objects.create(toolkit=toolkit, digest=sources.digest_of(files), content=content, size=len(content))
    with pytest.raises(SourceError, match="leads out"):
        sources.unpack(sources.digest_of(files))
    assert not home.exists()


@pytest.mark.parametrize("digest", ["", "x", "sha256:../../etc", "sha256:" + "A" * 64])
@pytest.mark.django_db
def test_only_a_digest_names_a_source(digest: str) -> None:
    with pytest.raises(SourceError):
        sources.unpack(digest)


class _Shelf:
    """Stands in for the table: threads of a test do not see what its transaction wrote."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.objects = self

    def filter(self, **conditions: str) -> "_Shelf":
        return self

    def first(self) -> "_Shelf":
        return self
