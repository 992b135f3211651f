"""What an agent sends is shown as it is: nothing of it runs, hides or pretends."""

from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import User

from policy.models import Vote
from policy.views.exactly import exact
from policy.views.narrowing import narrow
from registry.models import ToolkitVersion
from tests.policy.asking import REFUND, approver, browser, page, payments, question

pytestmark = pytest.mark.django_db

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    '"><svg onload=alert(1)>',
    "[link](javascript:alert(1))",
    "{{ settings.SECRET_KEY }}",
)


@pytest.fixture
def version(db: None) -> ToolkitVersion:
    return payments()


@pytest.fixture
def ana(version: ToolkitVersion) -> User:
    return approver("ana", version)


@pytest.fixture
def ben(version: ToolkitVersion) -> User:
    return approver("ben", version)


class Markup(HTMLParser):
    """Whatever in a page could run or style: none of it comes from us, all of it would come from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[str] = []
        self._is_ours = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._is_ours = self._is_ours or given.get("id") == "content-main"
        if (tag == "script" and not given.get("src")) or tag in ("svg", "img", "iframe", "object", "b"):
            self.running.append(tag)
        for name, value in attrs:
            is_script = (value or "").strip().lower().startswith("javascript:") and name in ("href", "src", "action")
            if name.startswith("on") or is_script or (self._is_ours and name == "style"):
                self.running.append(f"{tag} {name}")


def test_nothing_is_framed_and_nothing_in_a_card_can_run(version: ToolkitVersion, ana: User, ben: User) -> None:
    for place, payload in enumerate(HOSTILE):
        asked = question(
            version, {"amount": float(place), "note": payload, payload: payload}, user_id=payload, reason=payload
        )
        Vote.objects.create(approval=asked, person=ben, answer="approve", reason=payload)
    named = question(version, {"amount": 9.0}, rule="<b onclick=x>rule</b>", quorum=2)
    client = browser(ana)
    for path in ("/approvals/", f"/approvals/{named.pk}/", f"/approvals/{asked.pk}/", "/approvals/history/?who=all"):
        answer = client.get(path)
        assert answer["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
        assert "'unsafe-inline'" not in answer["Content-Security-Policy"].partition("script-src")[2].partition(";")[0]
        found = Markup()
        found.feed(answer.content.decode())
        assert found.running == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in client.get("/approvals/").content.decode()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pay \u202ecod.exe", "⟦U+202E⟧"),
        ("zero\u200bwidth", "⟦U+200B⟧"),
        ("no\u00a0break", "⟦U+00A0⟧"),
        ("wide\u3000space", "⟦U+3000⟧"),
        ("tag\U000e0041", "⟦U+E0041⟧"),
        ("filler\u3164", "⟦U+3164⟧"),
        ("selector\ufe0f", "⟦U+FE0F⟧"),
        ("del\x7f", "⟦U+007F⟧"),
        ("line\u2028", "⟦U+2028⟧"),
        ("lone\ud800", "⟦U+D800⟧"),
        ("private\ue000", "⟦U+E000⟧"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, named: str) -> None:
    shown = exact({"note": text}, 1_000)
    assert f"<mark>{named}</mark>" in shown.html
    assert shown.hidden == 1
    shown.html.encode()


def test_what_can_be_seen_stays_and_look_alikes_are_named() -> None:
    shown = exact({"b": "Zürich, naïve, 東京, παράδειγμα", "a": "bell\x07", "c": "\u0440\u0430ypal ⟦U+202E⟧"}, 1_000)
    assert shown.hidden == 0
    assert "<mark>" not in shown.html
    assert "Zürich, naïve, 東京, παράδειγμα" in shown.html
    assert "\\u0007" in shown.html
    assert shown.html.index("&quot;a&quot;") < shown.html.index("&quot;b&quot;")
    assert shown.mixed == ("\u0440\u0430ypal",)


def test_long_arguments_are_cut_on_a_card_and_whole_on_their_own_page(version: ToolkitVersion, ana: User) -> None:
    asked = question(version, {"amount": 1.0, "note": "x" * 20_000 + "END"})
    assert "Only a part is shown" in page(ana)
    assert "END" not in page(ana)
    alone = page(ana, f"/approvals/{asked.pk}/")
    assert "END" in alone
    assert "Only a part is shown" not in alone


def test_a_grant_starts_from_these_very_arguments() -> None:
    schema = REFUND["input"]
    assert isinstance(schema, dict)
    assert narrow({"amount": 2.5}, schema) == "input.amount == 2.5"
    assert narrow({"amount": 2, "note": 'a "b"'}, schema) == (
        'input.amount == 2 && has(input.note) && input.note == "a \\"b\\""'
    )
    assert narrow({"odd": 1}, schema) == ""
    assert narrow(None, schema) == ""
    assert "a\u202e" not in narrow({"amount": 1.0, "note": "a\u202e"}, schema)
