#!/usr/bin/env python
"""Django's commands, with Placet's settings."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError, ProgrammingError

NO_TABLE = ("no such table", "does not exist")  # as SQLite says it, and PostgreSQL


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except (OperationalError, ProgrammingError) as error:
        if not any(words in str(error) for words in NO_TABLE):
            raise
        sys.exit(f"{_home()} has no tables yet, or not all: `make run` makes them, and so does `manage.py migrate`.")


def _home() -> str:
    from django.conf import settings

    return f"The database of PLACET_HOME={settings.PLACET_HOME}"


if __name__ == "__main__":
    main()
