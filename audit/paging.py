"""Pages of very long lists."""

import hashlib
import time
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.core.paginator import Paginator
from django.utils.functional import cached_property

from audit.models import Event

SLOW = 0.15  # seconds a count may take before it is remembered
REMEMBERED = 15  # seconds for which it is

if TYPE_CHECKING:
    _Base = Paginator[Any]
else:
    _Base = Paginator


class LongListPaginator(_Base):
    """A count that was slow is kept while someone leafs through the list; late pages are read from the near end."""

    object_list: Any

    @cached_property
    def count(self) -> int:
        key = self._key()
        if (known := cache.get(key)) is not None:
            return int(known)
        start = time.monotonic()
        count = int(self.object_list.order_by().count())
        if time.monotonic() - start > SLOW:
            cache.set(key, count, REMEMBERED)
        return count

    def page(self, number: Any) -> Any:
        """An offset is walked row by row, so the second half of a list is read backwards."""
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        end = min(start + self.per_page, self.count)
        if start <= self.count // 2 or not self.object_list.ordered:
            rows = self.read(self.object_list[start:end])
        else:
            rows = self.read(self.object_list.reverse()[self.count - end : self.count - start])[::-1]
        return self._get_page(rows, number, self)  # type: ignore[attr-defined]

    def read(self, rows: Any) -> list[Any]:
        """The rows of one page."""
        return list(rows)

    def _key(self) -> str:
        try:
            asked = self.object_list.order_by().query.sql_with_params()
        except EmptyResultSet:
            asked = ()
        return "audit.count." + hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()


class EventPaginator(LongListPaginator):
    """Finds the keys of a page first: an index tells them, and sorting whole rows is what would take long."""

    def read(self, rows: Any) -> list[Event]:
        keys = list(rows.values_list("pk", flat=True))
        found = Event.objects.in_bulk(keys)
        return [found[key] for key in keys]
