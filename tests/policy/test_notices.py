"""Notices: written with the fact, sent afterwards, tried again with patience, and never a way to decide."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.db.models.functions import Now
from django.db.transaction import TransactionManagementError

from audit.models import Event
from config import env
from policy import delivery, notices
from policy.models import Notice
from policy.undelivered import Undelivered
from registry.clock import Later
from tests.services.mail import MailServer, mail_server


@pytest.fixture
def ana(db: None) -> User:
    return User.objects.create_user("ana", email="ana@example.org")


@pytest.fixture
def server(settings: Any) -> Iterator[MailServer]:
    """A real mail server on loopback, and Django's real way to it."""
    with mail_server() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.DEFAULT_FROM_EMAIL = "Placet <placet@example.org>"
        settings.PLACET_URL = "https://placet.example.org"
        yield server


def tell(*people: User, **changes: Any) -> list[Notice]:
    told: dict[str, Any] = {
        "subject": "support-bot asks to run Payments.Refund",
        "text": "A call needs a person.",
        "path": "/approvals/1/",
        "facts": {"tool": "Payments.Refund@1.0.0", "agent": "support-bot", "risk": "high"},
    }
    with transaction.atomic():
        return notices.tell("approval.asked", people=people, **{**told, **changes})


def later(notice: Notice) -> None:
    """As if its time had come."""
    Notice.objects.filter(pk=notice.pk).update(next_at=Later(-1))


# Writing


def test_one_notice_for_each_person_with_an_address_and_one_for_the_webhook(ana: User, settings: Any) -> None:
    settings.PLACET_NOTICE_WEBHOOK = "https://hooks.example.org/services/T0/SECRET"
    bob = User.objects.create_user("bob", email="bob@example.org")
    without = User.objects.create_user("without")
    gone = User.objects.create_user("gone", email="gone@example.org", is_active=False)
    agent = User.objects.create_user("agent:x", email="x@example.org")
    second = User.objects.create_user("ana2", email="ANA@example.org")
    written = tell(ana, bob, without, gone, agent, second, ana)
    assert [(notice.channel, notice.target.lower()) for notice in written] == [
        ("mail", "ana@example.org"),
        ("mail", "bob@example.org"),
        ("webhook", "https://hooks.example.org"),
    ]
    assert "SECRET" not in str(list(Notice.objects.values()))


def test_a_fact_that_is_rolled_back_tells_nobody(ana: User) -> None:
    with transaction.atomic():
        tell(ana)
        transaction.set_rollback(True)
    assert not Notice.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_notice_without_a_transaction_is_a_mistake() -> None:
    with pytest.raises(TransactionManagementError):
        notices.tell("x", people=[], subject="s", text="t", path="/", facts={})


@pytest.mark.parametrize(
    "path", ["", "approvals/", "//evil.example", "/\\evil.example", "https://evil", "/a b", "/a\r\nX: y"]
)
def test_a_notice_links_to_a_page_of_ours_and_nowhere_else(ana: User, path: str) -> None:
    with pytest.raises(ValueError, match="page of ours"):
        tell(ana, path=path)
    assert not Notice.objects.exists()


def test_a_notice_tells_facts_and_no_arguments(ana: User) -> None:
    with pytest.raises(ValueError, match="does not tell arguments"):
        tell(ana, facts={"tool": "Payments.Refund", "arguments": {"amount": 5}})
    moment = datetime(2026, 11, 16, 12, tzinfo=UTC)
    (notice,) = tell(ana, facts={"decide_by": moment, "rule": "two\r\nlines" + "x" * 500, "quorum": 2, "risk": None})
    facts = notice.content["facts"]
    assert facts["decide_by"] == "2026-11-16T12:00:00+00:00"
    assert facts["quorum"] == 2
    assert facts["rule"].startswith("two lines")
    assert len(facts["rule"]) == notices.MAX_FACT
    assert "risk" not in facts


# By mail


def test_the_mail_says_what_happened_and_where_to_look(ana: User, server: MailServer) -> None:
    (notice,) = tell(ana)
    assert delivery.deliver() == 1
    ((recipients, letter),) = server.letters
    assert recipients == ["ana@example.org"]
    assert letter["Subject"] == "support-bot asks to run Payments.Refund"
    assert letter["From"] == "Placet <placet@example.org>"
    assert letter["Message-ID"] == f"<placet-notice-{notice.pk}@example.org>"
    assert letter["Auto-Submitted"] == "auto-generated"
    assert letter.get_content_type() == "text/plain"
    body = letter.get_payload(decode=True)
    assert isinstance(body, bytes)
    assert "https://placet.example.org/approvals/1/" in body.decode()
    assert "Tool: Payments.Refund@1.0.0" in body.decode()
    notice.refresh_from_db()
    assert (notice.state, notice.attempts, notice.error) == ("sent", 1, "")
    assert notice.sent_at is not None
    assert delivery.deliver() == 0
    assert len(server.letters) == 1


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\u2028", "\x0b", "\x85", "\u202e"])
def test_a_subject_is_one_line_whatever_is_put_into_it(ana: User, server: MailServer, end: str) -> None:
    tell(ana, subject=f"harmless{end}Bcc: eve@example.org{end}{end}body")
    assert delivery.deliver() == 1
    ((recipients, letter),) = server.letters
    assert recipients == ["ana@example.org"]
    assert letter["Bcc"] is None
    assert letter["Subject"] == "harmless Bcc: eve@example.org body"


def test_without_a_mail_server_the_mail_is_a_file(ana: User, settings: Any, tmp_path: Path) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path / "mail")
    tell(ana)
    assert delivery.deliver() == 1
    (letter,) = (tmp_path / "mail").iterdir()
    assert "To: ana@example.org" in letter.read_text()


# Patience


def test_a_mail_that_is_refused_is_tried_again_later_and_then_sent(ana: User, server: MailServer) -> None:
    server.refuse["RCPT"] = "451 try ana@example.org later, password was hunter2"
    (notice,) = tell(ana)
    assert delivery.deliver() == 0
    notice.refresh_from_db()
    assert (notice.state, notice.attempts) == ("waiting", 1)
    assert notice.error == "the mail server refuses the recipient"
    assert delivery.deliver() == 0  # not yet
    assert Notice.objects.get().attempts == 1
    server.refuse.clear()
    later(notice)
    assert delivery.deliver() == 1
    assert Notice.objects.get().state == "sent"


def test_after_eight_attempts_it_is_given_up_and_the_trail_tells(ana: User, server: MailServer) -> None:
    server.refuse["MAIL"] = "550 no"
    (notice,) = tell(ana)
    for _ in range(12):
        later(notice)
        delivery.deliver()
    notice.refresh_from_db()
    assert (notice.state, notice.attempts, notice.error) == ("failed", 8, "the mail server said 550")
    told = Event.objects.get(subject_kind="notice", subject_id=str(notice.pk))
    assert (told.event, told.outcome) == ("notice.failed", "failed")
    assert "ana@example.org" not in str(told.detail)


def test_what_was_given_up_can_be_sent_again_by_hand(ana: User, server: MailServer) -> None:
    (notice,) = tell(ana)
    Notice.objects.update(state="failed", attempts=8, error="x")
    assert delivery.try_again(Notice.objects.all(), actor="user:root") == 1
    assert delivery.try_again(Notice.objects.all(), actor="user:root") == 0
    assert delivery.deliver() == 1
    assert Event.objects.filter(subject_id=str(notice.pk), event="notice.sent_again", actor="user:root").count() == 1


def test_a_worker_that_died_while_sending_is_replaced(ana: User, server: MailServer) -> None:
    (notice,) = tell(ana)
    assert delivery._claim(notice)  # and then nothing more
    assert delivery.deliver() == 0
    later(notice)
    assert delivery.deliver() == 1
    assert Notice.objects.get().attempts == 2


def test_a_notice_whose_last_attempt_was_never_heard_of_again_is_given_up(ana: User, server: MailServer) -> None:
    (notice,) = tell(ana)
    Notice.objects.update(attempts=8, next_at=Later(-1))
    assert delivery.deliver() == 0
    notice.refresh_from_db()
    assert notice.state == "failed"
    assert not server.letters


def test_when_nobody_answers_the_others_do_not_each_wait_for_the_same_silence(
    ana: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def nobody(notice: Notice) -> None:
        tried.append(notice.pk)
        raise Undelivered("the mail server is away", is_away=True)

    monkeypatch.setattr(delivery, "_send", nobody)
    for _ in range(5):
        tell(ana)
    assert delivery.deliver() == 0
    assert len(tried) == 1
    assert Notice.objects.filter(next_at__gt=Now()).count() == 5
    assert sorted(Notice.objects.values_list("attempts", flat=True)) == [0, 0, 0, 0, 1]


def test_a_round_ends_when_its_time_is_over(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_send", lambda notice: None)
    for _ in range(5):
        tell(ana)
    ticks = iter(range(0, 1_000, 8))
    assert delivery.deliver(clock=lambda: float(next(ticks))) == 1
    assert delivery.deliver() == 4


def test_the_pauses_grow_with_jitter_up_to_an_hour() -> None:
    assert [delivery.pause(n, jitter=0.5) for n in range(1, 9)] == [10, 30, 90, 270, 810, 2430, 3600, 3600]
    assert delivery.pause(1, jitter=0.0) == 7.5
    assert delivery.pause(1, jitter=1.0) == 12.5


def test_a_surprise_while_sending_is_an_attempt_too_and_its_words_are_not_kept(
    ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(notice: Notice) -> None:
        raise RuntimeError("smtp://user:hunter2@mail")

    monkeypatch.setattr(delivery, "_send", surprise)
    tell(ana)
    assert delivery.deliver() == 0
    assert Notice.objects.get().error == "it could not be sent (RuntimeError)"


@pytest.mark.django_db(transaction=True)
def test_many_workers_send_each_notice_once(server: MailServer) -> None:
    people = [User.objects.create_user(f"p{n}", email=f"p{n}@example.org") for n in range(20)]
    tell(*people)
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        delivery.deliver()
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert sorted(to for recipients, _ in server.letters for to in recipients) == sorted(p.email for p in people)
    assert set(Notice.objects.values_list("state", "attempts")) == {("sent", 1)}


@pytest.mark.django_db(transaction=True)
def test_what_is_committed_wakes_a_worker_and_a_broker_that_is_away_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from policy.tasks import deliver_notices

    woken = []

    def away(**options: Any) -> None:
        woken.append(options)
        raise ConnectionError

    monkeypatch.setattr(deliver_notices, "apply_async", away)
    tell(User.objects.create_user("ana", email="ana@example.org"))
    assert len(woken) == 1
    assert Notice.objects.get().state == "waiting"


def test_the_timetable_brings_a_worker_round() -> None:
    from config.celery import app

    assert app.conf.beat_schedule["notices"]["task"] == "policy.deliver_notices"
    app.loader.import_default_modules()
    assert "policy.deliver_notices" in app.tasks


# Settings


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("smtp://mail.example.org", ("mail.example.org", 587, "", "", False, True)),
        ("smtp://u%40x:p%2Fw@mail.example.org:2525", ("mail.example.org", 2525, "u@x", "p/w", False, True)),
        ("smtps://u:p@mail.example.org", ("mail.example.org", 465, "u", "p", True, False)),
        ("smtp://127.0.0.1:25", ("127.0.0.1", 25, "", "", False, False)),
        ("smtp://relay.example.org:25?starttls=0", ("relay.example.org", 25, "", "", False, False)),
    ],
)
def test_the_mail_server_is_read_from_one_address(monkeypatch: pytest.MonkeyPatch, url: str, told: Any) -> None:
    monkeypatch.setenv("EMAIL_URL", url)
    server = env.mail("EMAIL_URL")
    assert server is not None
    assert (server.host, server.port, server.user, server.password, server.is_tls, server.is_starttls) == told
    assert repr(server) == f"MailServer({told[0]}:{told[1]})"


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.org",
        "http://x",
        "smtp://:25",
        "smtp://h:99999",
        "smtp://h:x",
        "smtp://h?tls=1",
        "smtp://h/x",
        "smtp://[h",
    ],
)
def test_a_mail_server_that_cannot_be_read_stops_the_start_without_repeating_it(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("EMAIL_URL", url)
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL") as refusal:
        env.mail("EMAIL_URL")
    assert url not in str(refusal.value)


def test_nothing_set_means_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMAIL_URL", "")
    assert env.mail("EMAIL_URL") is None


@pytest.mark.parametrize("url", ["ftp://x", "placet.example.org", "https://x?q=1", "https://"])
def test_our_own_address_must_be_one(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("PLACET_URL", url)
    with pytest.raises(ImproperlyConfigured, match="PLACET_URL"):
        env.own_url("PLACET_URL", "http://127.0.0.1:8000")


def test_our_own_address_has_no_slash_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACET_URL", "https://placet.example.org/")
    assert env.own_url("PLACET_URL", "x") == "https://placet.example.org"
    monkeypatch.delenv("PLACET_URL")
    assert env.own_url("PLACET_URL", "http://127.0.0.1:8000") == "http://127.0.0.1:8000"


def test_production_refuses_a_webhook_that_would_not_be_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    from config.check import throw_away_settings
    from config.settings import base

    for name, value in throw_away_settings().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(base, "PLACET_NOTICE_WEBHOOK", "https://hooks.example.org/x")
    monkeypatch.setattr(base, "DATABASES", {"default": {"ENGINE": "django.db.backends.postgresql"}})
    for secret in ("", "short"):
        monkeypatch.setattr(base, "PLACET_NOTICE_SECRET", secret)
        with pytest.raises(ImproperlyConfigured, match="PLACET_NOTICE_SECRET"):
            _production()
    monkeypatch.setattr(base, "PLACET_NOTICE_SECRET", "a secret that is long enough")
    assert _production().PLACET_PRODUCTION


def _production() -> Any:
    import sys

    sys.modules.pop("config.settings.production", None)
    try:
        return importlib.import_module("config.settings.production")
    finally:
        sys.modules.pop("config.settings.production", None)
