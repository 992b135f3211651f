"""ReadOnlyAdmin: a list and its rows, for looking at only."""

from typing import Any

from django.contrib.admin import ShowFacets
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from audit.paging import LongListPaginator


class ReadOnlyAdmin(ModelAdmin):
    """The staff look at what `get_queryset` shows them; nothing is added, changed or removed; long lists stay quick."""

    paginator = LongListPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # counting for every choice of a filter reads the whole table as often
    list_per_page = 50
    list_filter_submit = True
    actions: Any = None
    show_add_link = False

    class Media:
        css = {"all": ["audit/evidence.css"]}

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """A longer text finds nothing that a shorter one would not, and some databases refuse it."""
        return super().get_search_results(request, queryset, search_term[:500])
