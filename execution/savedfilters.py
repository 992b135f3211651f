"""Saved filters: kept, renamed by keeping again, forgotten: sole writer of saved filters."""

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from audit.visible import visible
from execution.models import SavedFilter

MOST = 50  # that one person keeps


class SavedFilterError(Exception):
    """Why a filter is not kept; a sentence."""


def of(owner: User, place: str) -> QuerySet[SavedFilter]:
    return SavedFilter.objects.filter(owner=owner, place=place)


def keep(owner: User, place: str, name: str, query: str) -> SavedFilter:
    """Under this name from now on, in the place of an earlier one of the same name."""
    name = visible(" ".join(name.split()))
    if not name or len(name) > 60:
        raise SavedFilterError("Give the filter a name of at most 60 characters.")
    if not query or len(query) > 500:
        raise SavedFilterError("Search for something first; then keep it under a name.")
    try:
        with transaction.atomic():
            same = of(owner, place).filter(name__iexact=name).first()
            if same is not None:
                same.name, same.query = name, query
                same.save(update_fields=["name", "query"])
                return same
            if SavedFilter.objects.filter(owner=owner).count() >= MOST:
                raise SavedFilterError(f"You keep {MOST} filters already; forget one first.")
            return SavedFilter.objects.create(owner=owner, place=place, name=name, query=query)
    except IntegrityError as error:
        raise SavedFilterError("You have just kept a filter of this name; try again.") from error


def forget(owner: User, id: int) -> bool:
    """False if there is none of theirs with this number."""
    return bool(SavedFilter.objects.filter(owner=owner, pk=id).delete()[0])
