"""Ids: UUIDs of version 7 that come in the order in which they were made."""

import time
import uuid

from registry.ids import new_id


def test_an_id_is_a_uuid_of_version_7_that_tells_when_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    made = new_id()
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before <= made.int >> 80 <= time.time_ns() // 1_000_000


def test_ids_made_within_a_millisecond_still_come_in_order() -> None:
    made = []
    for _ in range(2_000):
        made.append(new_id())
        begun = time.time_ns()
        while time.time_ns() - begun < 1_000:  # an id tells a quarter of a microsecond apart
            continue
    assert made == sorted(made)
    assert len(set(made)) == len(made)
