"""What people are told: sole writer of new notices; policy/delivery.py sends them."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError

from policy import delivery
from policy.models import Notice
from registry.actors import is_person

# What a notice may say about a call: names and moments. A value of its arguments is read on the page, after a login.
_ABOUT_CALLS = ("tool", "toolkit", "agent", "risk", "rule", "decide_by", "run_by", "quorum", "call")
FACTS = frozenset((*_ABOUT_CALLS, "approval", "request", "permission", "person", "outcome", "verdict"))
MAX_SUBJECT = 200
MAX_TEXT = 4_000
MAX_FACT = 200
_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")  # a page of ours: one slash, then printable ASCII without a backslash


def tell(
    kind: str, *, people: Iterable[User], subject: str, text: str, path: str, facts: Mapping[str, Any]
) -> list[Notice]:
    """Notices in the current transaction: one per person with an address, one for the webhook if there is one."""
    if not connection.in_atomic_block:
        raise TransactionManagementError("A notice is written in the transaction of its fact: open one first.")
    content = {
        "subject": _line(subject, MAX_SUBJECT),
        "text": "\n".join(_line(line, MAX_TEXT) for line in text.splitlines())[:MAX_TEXT],
        "path": _own(path),
        "facts": _checked(facts),
    }
    mail = Notice.Channel.MAIL
    new = [Notice(kind=kind, channel=mail, target=to, content=content) for to in _addresses(people)]
    if settings.PLACET_NOTICE_WEBHOOK:
        target = webhook_shown(settings.PLACET_NOTICE_WEBHOOK)
        new.append(Notice(kind=kind, channel=Notice.Channel.WEBHOOK, target=target, content=content))
    if new:
        Notice.objects.bulk_create(new)
        transaction.on_commit(delivery.kick, robust=True)
    return new


def webhook_shown(url: str) -> str:
    """A webhook's address as rows and pages may show it: the rest of it is often a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"


def _addresses(people: Iterable[User]) -> list[str]:
    """The addresses of people who still come in, each once, in the order given."""
    found = {}
    for person in people:
        if person.is_active and is_person(person) and _is_address(person.email):
            found[person.email.lower()] = person.email
    return list(found.values())


def _is_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


def _line(text: str, limit: int) -> str:
    """One line: whatever could end it, or steer a terminal, becomes a space."""
    plain = "".join(" " if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp", "Cs"} else c for c in text)
    return " ".join(plain.split())[:limit]


def _own(path: str) -> str:
    if not _PATH.fullmatch(path):
        raise ValueError(f"a notice links to a page of ours, not to {path!r}")
    return path


def _text(value: Any) -> str:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)


def _checked(facts: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := sorted(set(facts) - FACTS):
        raise ValueError(f"a notice does not tell {', '.join(unknown)}")
    return {
        name: value if isinstance(value, int) else _line(_text(value), MAX_FACT)
        for name, value in facts.items()
        if value is not None
    }
