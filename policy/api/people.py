"""IsPerson: some doors are for people with a login, never for a service credential."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from registry.actors import is_person


class IsPerson(BasePermission):
    """Lets in people only; an agent, whatever it is permitted, is refused."""

    message = "Only a person who is logged in can do this; an agent's key cannot."

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        return bool(user and user.is_authenticated and request.auth is None and is_person(user))
