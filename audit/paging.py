"""Pages of very long lists."""

import hashlib
import time
from typing import Any

from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.core.paginator import Paginator
from django.utils.functional import cached_property

SLOW = 0.15  # seconds a count may take before it is remembered
REMEMBERED = 15  # seconds for which it is


class LongListPaginator(Paginator[Any]):
    """Counts once while someone leafs through what was slow to count, and reads late pages from the near end."""

    @cached_property
    def count(self) -> int:
        key = self._key()
        if (known := cache.get(key)) is not None:
            return int(known)
        start = time.monotonic()
        count = self.object_list.order_by().count()  # type: ignore[union-attr, call-arg]
        if time.monotonic() - start > SLOW:
            cache.set(key, count, REMEMBERED)
        return count

    def _key(self) -> str:
        try:
            sql, params = self.object_list.order_by().query.sql_with_params()  # type: ignore[union-attr, call-arg]
        except EmptyResultSet:
            return "audit.count.empty"
        return "audit.count." + hashlib.sha256(repr((sql, params)).encode("utf-8", "surrogatepass")).hexdigest()

    def page(self, number: Any) -> Any:
        """An offset is walked row by row, so the second half of a list is read backwards."""
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        end = start + self.per_page
        if end + self.orphans >= self.count:
            end = self.count
        if start <= self.count // 2 or not getattr(self.object_list, "ordered", False):
            return self._get_page(self.object_list[start:end], number, self)
        backwards = self.object_list.reverse()[self.count - end : self.count - start]  # type: ignore[union-attr]
        return self._get_page(list(backwards)[::-1], number, self)
