"""Sends the notices that are due: sole writer of what became of a notice."""

import logging
import random
import smtplib
import time
from collections.abc import Callable
from email.utils import parseaddr
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from audit import trail
from policy import webhooks
from policy.models import Notice
from policy.undelivered import Undelivered
from registry.clock import Later

logger = logging.getLogger(__name__)

BATCH = 50
MAX_ATTEMPTS = 8
HOLD = 60.0  # seconds that a claim lasts; whoever dies while sending is replaced after them
BUDGET = 20.0  # seconds of one round, so that a slow receiver never keeps a worker from its calls
FIRST_PAUSE, PAUSE_FACTOR, LONGEST_PAUSE = 10.0, 3.0, 3_600.0
MAX_ERROR = 300


def kick() -> None:
    """Wake a worker for what was just written; the timetable comes round for what a broker lost."""
    from policy.tasks import deliver_notices

    try:
        deliver_notices.apply_async(expires=60)
    except Exception as error:  # each kind of broker fails in its own way; none of them may cost the fact its answer
        logger.warning("the broker is away (%s); notices wait for the next round", type(error).__name__)


def deliver(*, clock: Callable[[], float] = time.monotonic) -> int:
    """How many notices were sent; safe to run anywhere, any number of times at once: each is claimed first."""
    sent, until = 0, clock() + BUDGET
    while clock() < until and (waiting := list(_due()[:BATCH])):
        for notice in waiting:
            if clock() >= until:
                break
            if _claim(notice):
                sent += _try(notice)
    return sent


@transaction.atomic
def try_again(notices: QuerySet[Notice], *, actor: str) -> int:
    """Those among these that were given up wait once more, with all their attempts; how many they are."""
    ids = list(notices.filter(state=Notice.State.FAILED).values_list("pk", flat=True)[:1_000])
    for pk in ids:
        trail.record("notice", str(pk), "notice.sent_again", actor=actor)
    again = Notice.objects.filter(pk__in=ids, state=Notice.State.FAILED)
    transaction.on_commit(kick, robust=True)
    return again.update(state=Notice.State.WAITING, attempts=0, next_at=Now())


def pause(attempts: int, *, jitter: float) -> float:
    """Seconds before the next attempt: three times as long each time, up to an hour; jitter is 0 to 1."""
    return min(FIRST_PAUSE * PAUSE_FACTOR ** (attempts - 1), LONGEST_PAUSE) * (0.75 + jitter / 2)


def absolute(path: str) -> str:
    return f"{settings.PLACET_URL}{path}"


def _due() -> QuerySet[Notice]:
    return Notice.objects.filter(state=Notice.State.WAITING, next_at__lte=Now()).order_by("next_at", "id")


def _claim(notice: Notice) -> bool:
    """The number of attempts is the fence: of several workers that saw this one, the first gets it."""
    mine = _due().filter(pk=notice.pk, attempts=notice.attempts).order_by()
    if not mine.update(attempts=F("attempts") + 1, next_at=Later(HOLD)):
        return False
    notice.attempts += 1
    return True


def _try(notice: Notice) -> bool:
    if notice.attempts > MAX_ATTEMPTS:  # whoever made the last attempt died of it
        _fail(notice, Undelivered("the last attempt was never heard of again"))
        return False
    try:
        _send(notice)
    except Undelivered as error:
        _fail(notice, error)
        return False
    except Exception as error:
        logger.exception("notice %s could not be sent", notice.pk)
        _fail(notice, Undelivered(f"it could not be sent ({type(error).__name__})"))
        return False
    _mine(notice).update(state=Notice.State.SENT, sent_at=Now(), error="")
    return True


def _send(notice: Notice) -> None:
    if notice.channel == Notice.Channel.WEBHOOK:
        webhooks.post(notice, url=absolute(notice.content["path"]))
    else:
        _mail(notice)


def _mail(notice: Notice) -> None:
    content = notice.content
    sender = settings.DEFAULT_FROM_EMAIL
    host = parseaddr(sender)[1].rpartition("@")[2] or "localhost"
    # The same notice always has the same id, so that a mail sent twice is recognised as one.
    headers = {"Message-ID": f"<placet-notice-{notice.pk}@{host}>", "Auto-Submitted": "auto-generated"}
    message = EmailMessage(content["subject"], body_of(content), sender, [notice.target], headers=headers)
    try:
        message.send()
    except smtplib.SMTPResponseException as error:
        raise Undelivered(f"the mail server said {error.smtp_code}") from error
    except smtplib.SMTPRecipientsRefused as error:
        raise Undelivered("the mail server refuses the recipient") from error
    except (smtplib.SMTPException, OSError) as error:
        raise Undelivered(f"the mail server is away ({type(error).__name__})", is_away=True) from error


def body_of(content: dict[str, Any]) -> str:
    """Plain text: what happened, the facts, and where to read more; nothing in it decides anything."""
    facts = "\n".join(f"{name.replace('_', ' ').capitalize()}: {value}" for name, value in content["facts"].items())
    link = f"Open in Placet:\n{absolute(content['path'])}"
    return "\n\n".join(part for part in (content["text"], facts, link) if part) + "\n"


def _fail(notice: Notice, error: Undelivered) -> None:
    """Later once more, or never again and on the trail."""
    text = str(error)[:MAX_ERROR]
    if notice.attempts >= MAX_ATTEMPTS:
        with transaction.atomic():
            if _mine(notice).update(state=Notice.State.FAILED, error=text):
                detail = {"kind": notice.kind, "channel": notice.channel, "error": text}
                trail.record("notice", str(notice.pk), "notice.failed", actor="system", outcome="failed", detail=detail)
                logger.error("notice %s (%s) is given up: %s", notice.pk, notice.kind, text)
        return
    wait = max(pause(notice.attempts, jitter=random.random()), min(error.retry_after, LONGEST_PAUSE))
    _mine(notice).update(error=text, next_at=Later(wait))
    if error.is_away:
        # Nobody is there: the others need not each wait for the same silence.
        others = _due().filter(channel=notice.channel).order_by()
        others.update(next_at=Later(FIRST_PAUSE))


def _mine(notice: Notice) -> QuerySet[Notice]:
    return Notice.objects.filter(pk=notice.pk, state=Notice.State.WAITING, attempts=notice.attempts)
