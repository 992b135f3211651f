"""Triggers for SQLite and PostgreSQL from one description: what the database itself refuses or does.

SQLite loses a table's triggers when Django rebuilds the table to alter it: such a migration installs them again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

EVENTS = ("INSERT", "UPDATE", "DELETE")


def differs(*columns: str) -> str:
    """A condition: one of these columns is about to change."""
    return "(" + " OR ".join(f'OLD."{column}" IS DISTINCT FROM NEW."{column}"' for column in columns) + ")"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Refuses a change of a row under a condition, with a sentence that says why.

    `{lock}` in the condition marks a subquery whose row must not move until we are done. PostgreSQL needs it said;
    SQLite has one writer.
    """

    name: str
    table: str
    event: str
    when: str
    message: str

    def sqlite(self) -> Iterable[str]:
        yield (
            f'CREATE TRIGGER "{self.name}" BEFORE {self.event} ON "{self.table}" FOR EACH ROW '
            f"WHEN {_for_sqlite(self.when)} BEGIN SELECT RAISE(ABORT, '{_quoted(self.message)}'); END"
        )

    def postgresql(self) -> Iterable[str]:
        row = "OLD" if self.event == "DELETE" else "NEW"
        body = (
            f"IF {self.when.format(lock='FOR SHARE')} THEN RAISE EXCEPTION USING ERRCODE = 'check_violation', "
            f"MESSAGE = '{_quoted(self.message)}'; END IF; RETURN {row};"
        )
        yield from _postgresql_trigger(self.name, self.table, f"BEFORE {self.event}", "ROW", body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """Runs statements after a row changed; each vendor has its own words."""

    name: str
    table: str
    event: str
    sqlite_body: str
    postgresql_body: str
    when: str = ""
    is_per_statement: bool = False  # on PostgreSQL; SQLite knows rows only

    def sqlite(self) -> Iterable[str]:
        if self.event == "TRUNCATE":  # SQLite has no such statement; its deletes fire row by row
            return
        condition = f"WHEN {_for_sqlite(self.when)} " if self.when else ""
        yield (
            f'CREATE TRIGGER "{self.name}" AFTER {self.event} ON "{self.table}" FOR EACH ROW '
            f"{condition}BEGIN {self.sqlite_body} END"
        )

    def postgresql(self) -> Iterable[str]:
        body = f"IF {self.when} THEN {self.postgresql_body} END IF;" if self.when else self.postgresql_body
        scope = "STATEMENT" if self.is_per_statement else "ROW"
        yield from _postgresql_trigger(self.name, self.table, f"AFTER {self.event}", scope, body + " RETURN NULL;")


Trigger = Refusal | Reaction


class Install(Operation):
    """A migration operation that creates triggers, and drops them on the way back.

    It needs no models, so Django need not put together all of them as they were, which `RunPython` always does.
    """

    def __init__(self, *triggers: Trigger) -> None:
        self.triggers = triggers

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """No model changes."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        for trigger in self.triggers:
            create(trigger, schema_editor)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        for trigger in self.triggers:
            drop(trigger, schema_editor)

    def describe(self) -> str:
        return f"Install {len(self.triggers)} triggers"


def install(*triggers: Trigger) -> Operation:
    return Install(*triggers)


def create(trigger: Trigger, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Creates one trigger, replacing an older one of the same name."""
    drop(trigger, schema_editor)
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    for statement in trigger.postgresql() if is_postgresql else trigger.sqlite():
        schema_editor.execute(statement, None)


def drop(trigger: Trigger, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Drops one trigger if it exists."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f'DROP TRIGGER IF EXISTS "{trigger.name}" ON "{trigger.table}"', None)
        schema_editor.execute(f'DROP FUNCTION IF EXISTS "{trigger.name}"()', None)
    else:
        schema_editor.execute(f'DROP TRIGGER IF EXISTS "{trigger.name}"', None)


def _postgresql_trigger(name: str, table: str, timing: str, scope: str, body: str) -> Iterable[str]:
    yield f'CREATE FUNCTION "{name}"() RETURNS trigger LANGUAGE plpgsql AS $placet$ BEGIN {body} END $placet$'
    yield f'CREATE TRIGGER "{name}" {timing} ON "{table}" FOR EACH {scope} EXECUTE FUNCTION "{name}"()'


def _for_sqlite(condition: str) -> str:
    return condition.format(lock="")


def _quoted(text: str) -> str:
    return text.replace("'", "''")
