"""The database's clock, the only one that leases and deadlines are measured by."""

from functools import lru_cache
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField, Func, Value
from django.db.models.sql.compiler import SQLCompiler

LATER = {
    "postgresql": "statement_timestamp() + make_interval(secs => %s)",
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s)",
}


@lru_cache(maxsize=256)  # nearly all calls have the same few times to live
def later_param(vendor: str, seconds: float) -> float | str:
    """The parameter that `LATER[vendor]` takes."""
    return f"{seconds:+.3f} seconds" if vendor == "sqlite" else float(seconds)


class Later(Func):
    """The database's time, so many seconds from now."""

    output_field = DateTimeField()

    def __init__(self, seconds: float) -> None:
        super().__init__(Value(float(seconds)))
        self.seconds = seconds

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        return LATER[connection.vendor], [later_param(connection.vendor, self.seconds)]
