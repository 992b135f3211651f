"""The embedded broker: whole messages, each for one reader, in order."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection

ROOT = Path(__file__).parents[2]


def channel(folder: Path) -> Any:
    options = {"data_folder_in": str(folder), "data_folder_out": str(folder), "control_folder": str(folder / "c")}
    return Connection("filesystem://", transport="config.broker:Transport", transport_options=options).channel()


def test_messages_come_back_whole_and_in_order(tmp_path: Path) -> None:
    writer, reader = channel(tmp_path), channel(tmp_path)
    for number in range(20):
        writer._put("calls", {"n": number})
    assert [reader._get("calls")["n"] for _ in range(20)] == list(range(20))
    with pytest.raises(Empty):
        reader._get("calls")


def test_a_worker_that_hears_nothing_looks_up_soon(tmp_path: Path) -> None:
    quiet = channel(tmp_path).connection.client
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        quiet.drain_events(timeout=30)  # as long as celery may ask for: meanwhile it does not see that it is to go
    assert time.monotonic() - began < 5


def test_a_queue_has_its_own_messages(tmp_path: Path) -> None:
    both = channel(tmp_path)
    both._put("other", 1)
    with pytest.raises(Empty):
        both._get("calls")
    assert both._get("other") == 1


def test_readers_and_writers_at_once_lose_double_and_break_nothing(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys; from tests.config.test_broker import channel; from pathlib import Path\n"
                "c = channel(Path(sys.argv[1]))\n"
                "for n in range(300): c._put('calls', {'n': f'{sys.argv[2]}-{n}', 'pad': 'x' * 5000})",
                str(tmp_path),
                str(number),
            ],
            cwd=ROOT,
        )
        for number in range(2)
    ]
    got: list[str] = []

    def read() -> None:
        reader = channel(tmp_path)
        while len(got) < 600 and not done.is_set():
            try:
                got.append(reader._get("calls")["n"])
            except Empty:
                done.wait(0.005)

    done = threading.Event()
    readers = [threading.Thread(target=read) for _ in range(3)]
    for thread in readers:
        thread.start()
    for process in writers:
        assert process.wait(60) == 0
    for thread in readers:
        thread.join(20)
    done.set()
    assert sorted(got) == sorted(f"{writer}-{n}" for writer in range(2) for n in range(300))


def test_what_cannot_be_read_is_dropped_and_the_next_one_taken(tmp_path: Path) -> None:
    one = channel(tmp_path)
    (tmp_path / "00000000000000000000-x.calls.msg").write_text("{not json")
    one._put("calls", "good")
    assert one._get("calls") == "good"
    assert not list(tmp_path.glob("*.msg"))
