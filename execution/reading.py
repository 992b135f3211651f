"""One call's row, read with a statement that is compiled once: every caller that waits reads it."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections

from audit.glance import glance
from execution.models import Call


class _Plan(NamedTuple):
    """What Django's compiler works out anew for each query."""

    statement: str
    names: list[str]
    converters: list[tuple[int, Any, list[Callable[..., Any]]]]


def row(id: UUID) -> Call | None:
    database = connections[DEFAULT_DB_ALIAS]
    plan = _plan(database.vendor)
    found = glance(plan.statement, [id.hex if database.vendor == "sqlite" else id])
    if found is None:
        return None
    values = list(found)
    for index, expression, converters in plan.converters:
        for convert in converters:
            values[index] = convert(values[index], expression, database)
    return Call.from_db(DEFAULT_DB_ALIAS, plan.names, values)


@lru_cache(maxsize=2)
def _plan(vendor: str) -> _Plan:
    query = Call.objects.filter(pk=UUID(int=0)).order_by().query
    compiler = query.get_compiler(DEFAULT_DB_ALIAS)
    statement, _ = compiler.as_sql()
    columns = [column for column, _, _ in compiler.select]
    found = compiler.get_converters(columns)
    return _Plan(
        statement=statement,
        names=[column.target.attname for column in columns],
        converters=[(index, expression, converters) for index, (converters, expression) in found.items()],
    )
