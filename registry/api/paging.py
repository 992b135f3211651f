"""Pages of a list: {count, next, previous, results}."""

from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

from registry.api.errors import BadParameter


class Pages(PageNumberPagination):
    """Fifty to a page unless `page_size` says otherwise, at most two hundred."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200

    def get_page_size(self, request: Request) -> int | None:
        given = request.query_params.get("page_size")
        if given is None:
            return self.page_size
        if not (given.isascii() and given.isdecimal() and 1 <= int(given[:9]) <= self.max_page_size and len(given) < 9):
            raise BadParameter("page_size", f"Give a number from 1 to {self.max_page_size}.")
        return int(given)

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any] | None:
        try:
            return super().paginate_queryset(queryset, request, view)
        except NotFound:
            raise BadParameter("page", "There is no such page.") from None
