"""Database triggers that refuse to change evidence, whoever asks and in whatever language."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def append_only(table: str, *unique: tuple[str, ...]) -> migrations.RunPython:
    """A migration step after which rows of `table` can be added and read, and nothing else.

    `unique` names every group of columns that is unique, the primary key first: SQLite's INSERT OR REPLACE removes the
    row in its way without asking the delete trigger, so another trigger looks before it leaps.
    """

    def install(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
        for statement in _statements(editor.connection.vendor, table, unique):
            editor.execute(statement, params=None)

    def uninstall(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
        on_table = f" ON {table}" if editor.connection.vendor == "postgresql" else ""
        for name in _names(editor.connection.vendor, table):
            editor.execute(f"DROP TRIGGER IF EXISTS {name}{on_table}", params=None)

    return migrations.RunPython(install, uninstall)


def _names(vendor: str, table: str) -> list[str]:
    return [f"{table}_is_append_only"] if vendor == "postgresql" else [f"{table}_no_{verb}" for verb in _SQLITE_VERBS]


_SQLITE_VERBS = ("update", "delete", "replace")


def _statements(vendor: str, table: str, unique: tuple[tuple[str, ...], ...]) -> list[str]:
    if vendor == "postgresql":
        return [
            "CREATE OR REPLACE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege'; END $$",
            f"CREATE TRIGGER {table}_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change()",
        ]
    refuse = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    exists = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only and has this row already'); END"
    statements = [
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refuse}",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}",
    ]
    taken = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE {' AND '.join(f'{column} = NEW.{column}' for column in columns)})"
        for columns in unique
    )
    return [*statements, f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {taken} {exists}"]
