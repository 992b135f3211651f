"""Times on pages: UTC for whoever has no script, the moment for the script that knows the viewer's zone."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from execution.portal.times import moment, timed


def test_a_time_says_utc_in_its_text_and_on_hover() -> None:
    told = moment(datetime(2026, 11, 16, 16, 5, 9, tzinfo=timezone(timedelta(hours=2))))
    assert 'datetime="2026-11-16T14:05:09Z"' in told
    assert 'title="2026-11-16 14:05:09 UTC"' in told
    assert told.endswith(">2026-11-16 14:05:09 UTC</time>")


def test_no_time_is_a_dash() -> None:
    assert moment(None) == "–"


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match="full, ago"):
        moment(datetime.now(UTC), "fancy")


def test_an_exact_time_keeps_its_milliseconds_for_the_script_and_more_on_hover() -> None:
    told = moment(datetime(2026, 11, 16, 14, 5, 9, 123456, tzinfo=UTC), "exact")
    assert 'data-moment="2026-11-16T14:05:09.123Z"' in told
    assert 'title="2026-11-16 14:05:09.123456 UTC"' in told


def test_moments_in_a_sentence_are_times_and_the_rest_is_escaped() -> None:
    told = timed("<b> until 2026-11-16 14:05 UTC, not 2026-13-99 14:05 UTC")
    assert told.startswith('&lt;b&gt; until <time datetime="2026-11-16T14:05:00Z"')
    assert told.count("<time") == 1
    assert told.endswith("not 2026-13-99 14:05 UTC")
