"""Evidence can be added and read; every other way is refused, by the model and by the database."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, models, transaction

from audit import trail
from audit.models import Event, Seal
from audit.models.appendonly import AppendOnlyError
from audit.sealing import seal_new_events

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def evidence() -> None:
    trail.record("call", "c1", "call.received", actor="agent:demo")
    assert seal_new_events() is not None


def rows(model: type[models.Model]) -> list[Any]:
    return list(model._base_manager.order_by("pk").values_list())


def with_field(row: Any) -> Any:
    row.key_id = "other"
    return row


WAYS: dict[str, Callable[[Any], Any]] = {
    "save": lambda model: with_field(model.objects.get()).save(),
    "save some fields": lambda model: with_field(model.objects.get()).save(update_fields=["key_id"]),
    "save by force": lambda model: with_field(model.objects.get()).save(force_update=True),
    "delete": lambda model: model.objects.get().delete(),
    "update": lambda model: model.objects.update(key_id="other"),
    "update through the base manager": lambda model: model._base_manager.update(key_id="other"),
    "filtered update": lambda model: model.objects.filter(pk__gt=0).update(key_id="other"),
    "bulk_update": lambda model: model.objects.bulk_update([with_field(model.objects.get())], ["key_id"]),
    "update_or_create": lambda model: model.objects.update_or_create(pk=1, defaults={"key_id": "other"}),
    "queryset delete": lambda model: model.objects.all().delete(),
    "_raw_delete": lambda model: model.objects.all()._raw_delete("default"),
    "bulk_create over it": lambda model: model.objects.bulk_create(
        [model.objects.get()], update_conflicts=True, update_fields=["key_id"], unique_fields=["pk"]
    ),
}


@pytest.mark.parametrize("model", [Event, Seal])
@pytest.mark.parametrize("way", WAYS)
def test_the_model_refuses(way: str, model: type[models.Model]) -> None:
    before = rows(model)
    with pytest.raises(AppendOnlyError, match="append-only"):
        WAYS[way](model)
    assert rows(model) == before


STATEMENTS = (
    "UPDATE {table} SET key_id = 'other'",
    "UPDATE {table} SET key_id = key_id",
    "DELETE FROM {table}",
    "DELETE FROM {table} WHERE key_id <> ''",
)
OF_ONE_DATABASE = {
    "postgresql": (
        "TRUNCATE {table}",
        "TRUNCATE {table} CASCADE",
        "INSERT INTO {table} SELECT * FROM {table} ON CONFLICT ({pk}) DO UPDATE SET key_id = 'other'",
    ),
    "sqlite": (
        "INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
        "REPLACE INTO {table} SELECT * FROM {table}",
        "UPDATE OR REPLACE {table} SET key_id = 'other'",
    ),
}


@pytest.mark.parametrize("model", [Event, Seal])
def test_the_database_refuses_raw_sql(model: type[models.Model]) -> None:
    before = rows(model)
    pk = model._meta.pk
    assert pk is not None
    for statement in (*STATEMENTS, *OF_ONE_DATABASE[connection.vendor]):
        sql = statement.format(table=model._meta.db_table, pk=pk.column)
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
        assert rows(model) == before, sql


def test_a_replacement_by_subject_and_number_is_refused_too() -> None:
    """SQLite's REPLACE removes whatever is in its way under any unique constraint; PostgreSQL has no such thing."""
    columns = [field.attname for field in Event._meta.concrete_fields if field.attname != "id"]
    names = ", ".join(columns)
    insert = "INSERT OR REPLACE" if connection.vendor == "sqlite" else "INSERT"
    before = rows(Event)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{insert} INTO audit_event ({names}) SELECT {names} FROM audit_event")
    assert rows(Event) == before


def test_a_new_object_with_an_old_key_does_not_become_an_update() -> None:
    old = Event.objects.get()
    copy = Event(**{field.attname: getattr(old, field.attname) for field in Event._meta.concrete_fields})
    copy.actor = "user:mallory"
    with pytest.raises(DatabaseError), transaction.atomic():
        copy.save()
    assert Event.objects.get().actor == "agent:demo"
