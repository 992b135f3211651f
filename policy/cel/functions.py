"""The functions that a condition may call, as the engine has them."""

from dataclasses import dataclass

_LENGTHY = frozenset({"text", "list", "map"})
_NUMERIC = frozenset({"int", "double", "text"})
_TEXT = frozenset({"text"})
_MOMENT = frozenset({"timestamp"})
_TIME = frozenset({"timestamp", "duration"})


@dataclass(frozen=True, slots=True)
class Function:
    """What a function takes, the target of a method first, and the kind it gives."""

    takes: tuple[frozenset[str], ...]
    gives: str


FUNCTIONS = {
    "size": Function((_LENGTHY,), "int"),
    "int": Function((_NUMERIC,), "int"),
    "double": Function((_NUMERIC,), "double"),
    "string": Function((_NUMERIC | _TIME,), "text"),
    "timestamp": Function((_TEXT | _MOMENT,), "timestamp"),
    "duration": Function((frozenset({"text", "duration"}),), "duration"),
}
METHODS = {
    "size": Function((_LENGTHY,), "int"),
    "contains": Function((_TEXT, _TEXT), "bool"),
    "startsWith": Function((_TEXT, _TEXT), "bool"),
    "endsWith": Function((_TEXT, _TEXT), "bool"),
    "matches": Function((_TEXT, _TEXT), "bool"),
    "getFullYear": Function((_MOMENT,), "int"),
    "getMonth": Function((_MOMENT,), "int"),
    "getDate": Function((_MOMENT,), "int"),
    "getDayOfMonth": Function((_MOMENT,), "int"),
    "getDayOfWeek": Function((_MOMENT,), "int"),
    "getDayOfYear": Function((_MOMENT,), "int"),
    "getHours": Function((_TIME,), "int"),
    "getMinutes": Function((_TIME,), "int"),
    "getSeconds": Function((_TIME,), "int"),
    "getMilliseconds": Function((_TIME,), "int"),
}
# What the parts of a moment can be; months and days of month, week and year count from 0, dates from 1.
MOMENT_RANGES = {
    "getMonth": (0, 11),
    "getDate": (1, 31),
    "getDayOfMonth": (0, 30),
    "getDayOfWeek": (0, 6),
    "getDayOfYear": (0, 365),
    "getHours": (0, 23),
    "getMinutes": (0, 59),
    "getSeconds": (0, 59),
    "getMilliseconds": (0, 999),
}
EVERYWHERE = ("has", "all", "exists", "exists_one", "map", "filter")
