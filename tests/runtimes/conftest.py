"""A folder of misbehaving tools, and pools that end with the test; the pool is imported late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtimes.hosttools import TOOLS

if TYPE_CHECKING:
    from execution.runtimes.hosts import HostPool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "toolkit"
    folder.mkdir()
    (folder / "tools.py").write_text(TOOLS)
    return folder


@pytest.fixture
def make_pool(tmp_path: Path) -> Iterator[Callable[..., HostPool]]:
    from execution.runtimes.hosts import HostPool

    pools: list[HostPool] = []

    def make(**options: Any) -> HostPool:
        pools.append(HostPool(homes=tmp_path, **options))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()
    assert not list(tmp_path.glob("placet-hosts-*"))


@pytest.fixture
def pool(make_pool: Callable[..., HostPool]) -> HostPool:
    return make_pool()
