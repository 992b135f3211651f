"""A seal file of its own for every test, and the owner of the database as an adversary."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.flushing import without_triggers

Sql = Callable[..., None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> Path:
    """A state folder that starts empty, as the tables do."""
    settings.PLACET_HOME = tmp_path
    return tmp_path


@pytest.fixture
def owner_sql(db: None) -> Sql:
    """SQL by someone who can switch the triggers off."""

    def run(statement: str, *parameters: Any) -> None:
        with without_triggers(connection), connection.cursor() as cursor:
            cursor.execute(statement, parameters)

    return run
