"""Who sees and does what in the admin: the same object permissions as everywhere."""

from typing import Any

from django.http import HttpRequest

from registry import access
from registry.models import Tool, Toolkit, ToolkitVersion


class ReadOnly:
    """Nothing is added, changed or deleted by forms; steps of our own may still be offered."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class SeenToolkits(ReadOnly):
    """Staff see the toolkits, versions and tools that they have a permission on; superusers see all."""

    def get_queryset(self, request: HttpRequest) -> Any:
        visible: dict[Any, Any] = {
            Toolkit: access.visible_toolkits,
            ToolkitVersion: access.visible_versions,
            Tool: access.visible_tools,
        }
        found = visible[self.model](request.user)  # type: ignore[attr-defined]
        ordering = self.get_ordering(request)  # type: ignore[attr-defined]
        return found.order_by(*ordering) if ordering else found
