"""Homes: whoever begins at the same moment as others, or after somebody who was killed, has a folder that stays."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from execution.runtimes.homes import Homes


def take_away(folder: str) -> None:
    shutil.rmtree(folder)


def hold(folder: str) -> None:
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)


@pytest.mark.parametrize("sweep", [take_away, hold])
def test_one_that_others_sweep_while_it_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep: Callable[[str], None]
) -> None:
    make, made = tempfile.mkdtemp, list[str]()

    def swept(**how: object) -> str:
        made.append(make(**how))  # type: ignore[call-overload]
        if len(made) == 1:
            sweep(made[0])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept)
    home = Homes(tmp_path).new()

    assert home.is_dir()
    assert str(home.parent) == made[1]


def test_those_who_begin_at_once_do_not_sweep_each_other_away(tmp_path: Path) -> None:
    def begin(_: int) -> bool:
        homes = Homes(tmp_path)
        try:
            return homes.new().is_dir()
        finally:
            homes.remove()

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(begin, range(400)))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_held_survives_a_sweep_and_one_that_was_let_go_does_not(tmp_path: Path) -> None:
    kept, left = Homes(tmp_path), Homes(tmp_path)
    home, lost = kept.new(), left.new()
    left.forget()

    Homes(tmp_path).remove()

    assert home.is_dir()
    assert not lost.exists()
