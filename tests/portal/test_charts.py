"""Charts: a picture and a table that say the same, whatever their labels hold."""

from xml.etree import ElementTree

import pytest
from django.template.loader import render_to_string

from execution.portal.charts import Chart, Point, Series

HOSTILE = "</text></svg><script>alert(1)</script>\"'\u202e\x00"


def chart(kind: str = "bars", label: str = "Mon", **more: object) -> Chart:
    points = [Point(label=label, url="/a?b=1&c=2"), Point(label="Tue")]
    series = [
        Series(name="Succeeded", values=[3, 1], tone="good"),
        Series(name=str(more.pop("name", "Failed")), values=more.pop("values", [1, 0]), tone="bad"),  # type: ignore[arg-type]
    ]
    return Chart(key="calls", title="Calls", summary="4 calls", points=points, series=series, kind=kind)


def drawn(picture: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(picture.svg())


def heights(picture: Chart, tone: str) -> list[float]:
    return [
        float(each.attrib["height"]) for each in drawn(picture).iter("rect") if each.get("class") == f"chart-{tone}"
    ]


def test_bars_are_as_high_as_their_values() -> None:
    first, second = heights(chart(), "good")
    assert first == pytest.approx(3 * second, rel=0.01)


def test_what_happened_once_among_thousands_is_still_seen() -> None:
    series = [Series(name="Good", values=[100_000], tone="good"), Series(name="Bad", values=[1], tone="bad")]
    one = Chart(key="k", title="t", summary="s", points=[Point(label="x")], series=series)
    (bar,) = [each for each in drawn(one).iter("rect") if each.get("fill") == "url(#k-bad)"]
    assert float(bar.attrib["height"]) >= 1


@pytest.mark.parametrize("kind", ["bars", "lines"])
def test_hostile_labels_and_names_stay_text(kind: str) -> None:
    page = render_to_string("portal/chart.html", {"chart": chart(kind, label=HOSTILE, name=HOSTILE)})
    assert "<script" not in page
    assert "\u202e" not in page
    assert "\x00" not in page
    assert "&lt;script&gt;" in page
    drawn(chart(kind, label=HOSTILE, name=HOSTILE))  # still well-formed


def test_nothing_in_a_chart_is_inline_style_or_script() -> None:
    page = render_to_string("portal/chart.html", {"chart": chart()})
    assert "style=" not in page
    assert "onclick" not in page
    assert "javascript:" not in page


def test_the_table_says_what_the_picture_shows_and_leads_to_the_same_lists() -> None:
    page = render_to_string("portal/chart.html", {"chart": chart()})
    table = page.partition("<table")[2]
    for text in ("Mon", "Tue", "Succeeded", "Failed", "<td>3</td>", "<td>1</td>", 'href="/a?b=1&amp;c=2"'):
        assert text in table
    assert 'tabindex="-1"' in page.partition("<table")[0]  # keys reach the list by the table, once


def test_series_differ_by_pattern_and_not_by_colour_alone() -> None:
    fills = {
        each.get("fill") for each in drawn(chart()).iter("rect") if each.get("class") in ("chart-good", "chart-bad")
    }
    assert "url(#calls-bad)" in fills
    assert None in fills


def test_a_line_has_a_gap_where_a_value_is_missing() -> None:
    points = [Point(label=str(place)) for place in range(4)]
    series = [Series(name="p50", values=[1.0, None, 3.0, 4.0], tone="good")]
    picture = Chart(key="k", title="t", summary="s", points=points, series=series, kind="lines")
    (path,) = drawn(picture).iter("path")
    assert path.attrib["d"].count("L") == 1
    assert picture.rows[1]["cells"] == ["–"]


def test_a_chart_of_nothing_can_be_drawn() -> None:
    empty = Chart(key="k", title="t", summary="s", points=[], series=[Series(name="a", values=[], tone="good")])
    assert empty.is_empty
    drawn(empty)


def test_a_series_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="one value for each point"):
        Chart(key="k", title="t", summary="s", points=[], series=[Series(name="a", values=[1], tone="good")])
    with pytest.raises(ValueError, match="good, bad"):
        Series(name="a", values=[], tone="red")
