"""A move of a running call: one compiled statement, conditional on its fence, its moments by the database's clock."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections

from audit import guarded
from audit.rows import Rows
from execution.clock import LATER, Later, later_param
from execution.models import Call, State


def move(call: UUID, fence: int, changes: Mapping[str, Any], *rows: Rows) -> bool:
    """Whether the call still ran under this fence and was changed; if so, the rows are committed with the change."""
    vendor = connections[DEFAULT_DB_ALIAS].vendor
    shape = tuple((column, type(value) is Later) for column, value in changes.items())
    parameters = [later_param(vendor, value.seconds) if type(value) is Later else value for value in changes.values()]
    parameters += [call.hex if vendor == "sqlite" else call, fence]
    return guarded.write(_statement(vendor, shape), parameters, *rows)


@lru_cache(maxsize=64)
def _statement(vendor: str, shape: tuple[tuple[str, bool], ...]) -> str:
    changes = ", ".join(f'"{column}" = {LATER[vendor] if is_moment else "%s"}' for column, is_moment in shape)
    running = f"\"state\" = '{State.RUNNING.value}'"
    return f'UPDATE "{Call._meta.db_table}" SET {changes} WHERE "id" = %s AND "fence" = %s AND {running}'
