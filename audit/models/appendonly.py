"""Models whose rows are written once: the first of the two layers that refuse a change (triggers are the second)."""

from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

from django.db import models

M = TypeVar("M", bound=models.Model)


class AppendOnlyError(Exception):
    """Someone tried to change or remove evidence."""


def refuse(model: type[models.Model], verb: str) -> NoReturn:
    """Say which evidence was to be changed, and that it will not be."""
    raise AppendOnlyError(f"{model._meta.label} is append-only: its rows cannot be {verb}.")


class AppendOnlyQuerySet(models.QuerySet[M]):
    """Reads and adds; every way to change or remove rows raises."""

    def update(self, **kwargs: Any) -> NoReturn:
        refuse(self.model, "updated")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(self.model, "updated")

    def update_or_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(self.model, "updated")

    def delete(self) -> NoReturn:
        refuse(self.model, "deleted")

    # Django's deletion collector goes around delete(), and an instance's save around update().
    def _raw_delete(self, using: str | None) -> NoReturn:
        refuse(self.model, "deleted")

    def _update(self, values: Any) -> NoReturn:
        refuse(self.model, "updated")

    def bulk_create(self, objs: Iterable[M], *args: Any, **kwargs: Any) -> list[M]:
        if kwargs.get("update_conflicts"):
            refuse(self.model, "updated")
        return super().bulk_create(objs, *args, **kwargs)


class AppendOnlyModel(models.Model):
    """A row that is saved once and never again."""

    class Meta:
        abstract = True

    def save(
        self, *args: Any, force_update: bool = False, update_fields: Iterable[str] | None = None, **kwargs: Any
    ) -> None:
        if force_update or update_fields is not None or not self._state.adding:
            refuse(type(self), "updated")
        # Without this, a new object that names an existing primary key would become an UPDATE.
        kwargs["force_insert"] = True
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(type(self), "deleted")
