"""What every list of the registry shares."""

from typing import Any

from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.filters import SearchFilter
from rest_framework.viewsets import GenericViewSet

from registry.api.filters import KnownParameters, StrictOrdering


class RegistryViewSet(GenericViewSet[Any]):
    """Strict about its query; anonymous schema generation sees an empty list."""

    filter_backends: Any = [KnownParameters, DjangoFilterBackend, SearchFilter, StrictOrdering]
