"""Events as JSON lines or CSV, however many there are: read and sent piece by piece."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from django.db.models import Max, QuerySet
from django.http import StreamingHttpResponse

from audit.models import Event

CHUNK = 2_000
FIELDS = (
    "id",
    "subject_kind",
    "subject_id",
    "seq",
    "event",
    "actor",
    "at",
    "outcome",
    "detail",
    "prev_hash",
    "hash",
    "trace_id",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def response(events: QuerySet[Event], form: str) -> StreamingHttpResponse:
    """The events, oldest first, as a file to keep."""
    media_type, write = FORMS[form]
    name = f"placet-events-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.{form}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingHttpResponse(write(rows(events)), content_type=media_type, headers=headers)


def rows(events: QuerySet[Event]) -> Iterator[dict[str, Any]]:
    """Walks up the ids in pieces, to the newest event there was at the start; memory does not grow."""
    events = events.order_by("id")
    last, newest = 0, events.aggregate(newest=Max("id"))["newest"] or 0
    while last < newest:
        chunk = list(events.filter(id__gt=last, id__lte=newest).values_list(*FIELDS)[:CHUNK])
        if not chunk:
            return
        for values in chunk:
            yield as_json(dict(zip(FIELDS, values, strict=True)))
        last = chunk[-1][0]


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """One event in plain values: hashes in hex, the moment in UTC, the detail as an object."""
    row["at"] = moment(row["at"])
    row["detail"] = detail_of(row["detail"])
    row["prev_hash"] = bytes(row["prev_hash"]).hex()
    row["hash"] = bytes(row["hash"]).hex()
    return row


def moment(at: datetime) -> str:
    """A moment with microseconds, as everywhere in the evidence."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def detail_of(text: str) -> Any:
    """The stored detail; text that is not JSON was not written by us, and is shown as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def jsonl(found: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """One line per event; everything beyond ASCII is escaped, so no character can end a line or turn a terminal."""
    for piece in _pieces(json.dumps(row, separators=(",", ":")) + "\n" for row in found):
        yield piece.encode()


def csv_lines(found: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """A header and one record per event; no cell is a formula to a spreadsheet."""
    writer = csv.writer(_Echo(), quoting=csv.QUOTE_ALL)
    yield str(writer.writerow(FIELDS)).encode()
    for piece in _pieces(str(writer.writerow([_cell(row[field]) for field in FIELDS])) for row in found):
        yield piece.encode("utf-8", "backslashreplace")


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return f"'{text}" if text.lstrip(" \u00a0\ufeff").startswith(_FORMULA) else text


def _pieces(lines: Iterable[str], size: int = 200) -> Iterator[str]:
    """Many lines per write: a write per line costs more than the line."""
    waiting: list[str] = []
    for line in lines:
        waiting.append(line)
        if len(waiting) >= size:
            yield "".join(waiting)
            waiting.clear()
    if waiting:
        yield "".join(waiting)


class _Echo:
    """What csv writes to: hands the line back."""

    def write(self, line: str) -> str:
        return line


FORMS: dict[str, tuple[str, Callable[[Iterable[dict[str, Any]]], Iterator[bytes]]]] = {
    "jsonl": ("application/x-ndjson", jsonl),
    "csv": ("text/csv; charset=utf-8", csv_lines),
}
