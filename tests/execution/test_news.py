"""News of a running tool: only what is known to be news, not too often, and the last word always."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import orjson
import pytest

from execution import bell, news
from execution.news import BURST, MAX_KEPT, Listener, Speaker


def told(*said: dict[str, Any], words: str = "words") -> list[dict[str, Any]]:
    """What a listener in this process hears of what a tool says."""
    call = uuid4()
    with news.listening(call) as listener, Speaker(call, is_local=True) as speaker:
        for each in said:
            speaker.tell(each, words)
        speaker.close()
        found = []
        while (heard := listener.next(0)) is not None:
            found.append(dict(heard))
        return found


def test_progress_and_lines_arrive_with_their_words() -> None:
    progress, line = told({"kind": "progress", "done": 1, "total": 2}, {"kind": "log", "level": "error"})
    assert progress == {"kind": "progress", "message": "words", "done": 1, "total": 2}
    assert line == {"kind": "log", "message": "words", "level": "error"}


@pytest.mark.parametrize("done", [None, "5", True, float("nan"), float("inf"), 2**60, [1]])
def test_progress_that_is_no_number_is_no_news(done: Any) -> None:
    assert told({"kind": "progress", "done": done}) == []


def test_what_a_tools_process_makes_up_is_left_out() -> None:
    assert told({"kind": "approved", "level": "info"}) == []
    (line,) = told({"kind": "log", "level": "LOUD", "secret": "s"})
    assert line == {"kind": "log", "message": "words", "level": "info"}
    (progress,) = told({"kind": "progress", "done": 1, "total": "all"})
    assert progress["total"] is None


@pytest.mark.parametrize("words", ["x" * 5_000, "\0" * 5_000, "\U0001f600" * 5_000])
def test_words_of_any_length_and_kind_fit_the_bell(words: str) -> None:
    (line,) = told({"kind": "log", "level": "info"}, words=words)
    assert line["message"] == words[:1_000]


def test_what_comes_too_often_waits_and_the_latest_of_it_is_told_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("execution.news.time.monotonic", lambda: now[0])
    said: list[Any] = []
    monkeypatch.setattr(bell, "say", lambda topic, words, is_local: said.append(orjson.loads(words)["done"]))
    speaker = Speaker(uuid4(), is_local=True)
    for number in range(100):
        speaker.tell({"kind": "progress", "done": number}, "")
    assert said == list(range(BURST))
    now[0] = 0.15  # enough for one more
    speaker.tell({"kind": "progress", "done": 100}, "")
    speaker.tell({"kind": "progress", "done": 101}, "")
    assert said[BURST:] == [100]
    speaker.close()
    speaker.close()
    assert said[BURST:] == [100, 101]


def test_a_listener_that_does_not_read_keeps_a_bounded_number() -> None:
    listener = Listener()
    for _ in range(MAX_KEPT + 50):
        listener.hear('{"kind":"log"}')
        listener.wake()
    assert listener._queue.qsize() == MAX_KEPT


def test_nobody_listens_to_another_call() -> None:
    with news.listening(uuid4()) as listener, Speaker(uuid4(), is_local=True) as speaker:
        speaker.tell({"kind": "log", "level": "info"}, "words")
        assert listener.next(0) is None
