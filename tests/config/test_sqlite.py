"""The queue at SQLite's door: writers wait their turn instead of failing or sleeping."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from config.sqlite.base import Gate, gate_for

ROOT = Path(__file__).parents[2]


def test_one_writer_at_a_time_over_threads(tmp_path: Path) -> None:
    gate, inside, most = Gate(str(tmp_path / "gate")), 0, 0

    def write() -> None:
        nonlocal inside, most
        for _ in range(50):
            gate.enter(5)
            inside += 1
            most = max(most, inside)
            inside -= 1
            gate.leave()

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_one_writer_at_a_time_over_processes(tmp_path: Path) -> None:
    path = tmp_path / "db"
    gate = gate_for(str(path))
    assert gate is not None
    gate.enter(5)
    code = f"from config.sqlite.base import gate_for; g = gate_for({str(path)!r}); g.enter(5); print('in', flush=True)"
    other = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    time.sleep(1.5)
    assert other.poll() is None
    gate.leave()
    assert other.communicate(timeout=10)[0] == "in\n"


@pytest.mark.parametrize("name", [":memory:", "file:memorydb_default?mode=memory&cache=shared"])
def test_a_database_in_memory_needs_no_gate(name: str) -> None:
    assert gate_for(name) is None
