"""What would be invisible, or turn other text around, is written out."""

import pytest
from django.template import Context, Template

from audit.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ümläut, 漢字, 🙂", "plain, ümläut, 漢字, 🙂"),
        ("a\x00b\x1b[2J\r\n", "a␀b␛[2J␍␊"),
        ("x\x7f\x9b", "x␡⟨U+009B⟩"),
        ("abc\u202efdp.exe\u2069", "abc⟨U+202E⟩fdp.exe⟨U+2069⟩"),
        ("zero\u200bwidth\ufeff", "zero⟨U+200B⟩width⟨U+FEFF⟩"),
        ("line\u2028break", "line⟨U+2028⟩break"),
        ("\U000e0041tag", "⟨U+E0041⟩tag"),
    ],
)
def test_unseen_characters_are_shown_by_name(text: str, shown: str) -> None:
    assert visible(text) == shown


def render(template: str, value: object) -> str:
    return Template("{% load visible %}" + template).render(Context({"value": value}))


def test_the_filters_leave_escaping_to_the_template() -> None:
    assert render("{{ value|visible }}", "<b>\u202e") == "&lt;b&gt;⟨U+202E⟩"
    assert (
        render("{{ value|pretty }}", '{"b":"<i>","a":1}')
        == "{\n  &quot;a&quot;: 1,\n  &quot;b&quot;: &quot;&lt;i&gt;&quot;\n}"
    )


def test_text_that_is_no_json_is_shown_line_by_line() -> None:
    assert render("{{ value|pretty }}", "not\n{json\u202e") == "not\n{json⟨U+202E⟩"
