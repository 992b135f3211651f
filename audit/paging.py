"""Pages of very long lists."""

import hashlib
import time
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.core.paginator import Paginator
from django.utils.functional import cached_property

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
            return super().page(number)
        backwards = list(self.object_list.reverse()[self.count - end : self.count - start])
        return self._get_page(backwards[::-1], number, self)  # type: ignore[attr-defined]

    def _key(self) -> str:
        try:
            asked = self.object_list.order_by().query.sql_with_params()
        except EmptyResultSet:
            asked = ()
        return "audit.count." + hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()
