"""The moves of a call that every call makes, each one compiled statement, its moments by the database's clock."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections

from audit import guarded
from audit.rows import Rows
from execution.models import Call, State
from registry import revision
from registry.clock import LATER, Later, later_param


def take(call: Call, lease: float, patience: float | None, *rows: Rows) -> bool:
    """Whether the call was still queued as it was read, wanted, in time and judged by what holds now; it runs then.

    `patience`, if given, is the time from now that the call has for all its attempts.
    """
    changes: dict[str, Any] = {"state": State.RUNNING.value, "fence": call.fence + 1, "lease_until": Later(lease)}
    if call.started_at is None:
        changes["started_at"] = Later(0)
    if patience is not None:
        changes["deadline"] = Later(patience)
    return _move(State.QUEUED, call.pk, call.fence, changes | {"resend_at": None}, rows)


def move(call: UUID, fence: int, changes: Mapping[str, Any], *rows: Rows, held: State = State.RUNNING) -> bool:
    """Whether the call still ran under this fence and was changed; if so, the rows are committed with the change.

    `held` is WAITING_CALLBACK for one whose tool was to answer later.
    """
    return _move(held, call, fence, changes, rows)


def _move(state: State, call: UUID, fence: int, changes: Mapping[str, Any], rows: tuple[Rows, ...]) -> bool:
    vendor = connections[DEFAULT_DB_ALIAS].vendor
    shape = tuple((column, type(value) is Later) for column, value in changes.items())
    parameters = [later_param(vendor, value.seconds) if type(value) is Later else value for value in changes.values()]
    parameters += [call.hex if vendor == "sqlite" else call, fence]
    if state is State.QUEUED:
        parameters += [later_param(vendor, 0), revision.current()]
    return guarded.write(_statement(vendor, state, shape), parameters, *rows)


@lru_cache(maxsize=64)
def _statement(vendor: str, state: State, shape: tuple[tuple[str, bool], ...]) -> str:
    changes = ", ".join(f'"{column}" = {LATER[vendor] if is_moment else "%s"}' for column, is_moment in shape)
    held = f'"id" = %s AND "fence" = %s AND "state" = \'{state.value}\''
    if state is State.QUEUED:
        held += f' AND NOT "cancel_requested" AND "deadline" > {LATER[vendor]} AND {revision.IS_STILL}'
    return f'UPDATE "{Call._meta.db_table}" SET {changes} WHERE {held}'
