"""People who may approve the lab's calls, and short ways to ask and answer; models are imported late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from execution.messages import CallOutcome
    from policy.models import Approval
    from registry.models import Toolkit


def approver(name: str, toolkit: Toolkit, *groups: str, email: str = "") -> User:
    from django.contrib.auth.models import Group, User
    from guardian.shortcuts import assign_perm

    person = User.objects.create_user(name, email or f"{name}@placet.invalid", is_staff=True)
    assign_perm("registry.approve_toolkit", person, toolkit)
    for group in groups:
        person.groups.add(Group.objects.get_or_create(name=group)[0])
    return person


def asked(outcome: CallOutcome) -> Approval:
    """The approval that a parked call waits for."""
    from policy.models import Approval

    return Approval.objects.get(call=outcome.id)


def move_clock(approval: Approval, **moments: float) -> None:
    """Set moments of an approval, so many seconds from now; the trigger that forbids it is for everyone else."""
    from django.db import connection

    from tests.flushing import without_triggers

    with without_triggers(connection):
        set_clock(approval, **moments)


def set_clock(approval: Approval, **moments: float) -> None:
    """As above, where the guard is off already."""
    from policy.models import Approval
    from registry.clock import Later

    Approval.objects.filter(pk=approval.pk).update(**{name: Later(seconds) for name, seconds in moments.items()})


@contextmanager
def without_guards(table: str, *names: str) -> Iterator[None]:
    """While inside, these triggers of a table do not look."""
    from django.db import connection

    with connection.cursor() as cursor:
        kept = _switch_off(cursor, table, names)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            _switch_on(cursor, table, kept)


def _switch_off(cursor: Any, table: str, names: tuple[str, ...]) -> list[tuple[str, str]]:
    if cursor.db.vendor == "postgresql":
        for name in names:
            cursor.execute(f'ALTER TABLE {table} DISABLE TRIGGER "{name}"')
        return [(name, "") for name in names]
    kept = []
    for name in names:
        cursor.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = %s", [name])
        kept.append((name, cursor.fetchone()[0]))
        cursor.execute(f'DROP TRIGGER "{name}"')
    return kept


def _switch_on(cursor: Any, table: str, kept: list[tuple[str, str]]) -> None:
    for name, statement in kept:
        cursor.execute(statement or f'ALTER TABLE {table} ENABLE TRIGGER "{name}"')


def call_state(id: UUID) -> str:
    from execution.models import Call

    return Call.objects.get(pk=id).state


def events(kind: str, id: Any) -> list[str]:
    from audit.models import Event

    found = Event.objects.filter(subject_kind=kind, subject_id=str(id)).order_by("seq")
    return list(found.values_list("event", flat=True))


def lines(path: Any) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0
