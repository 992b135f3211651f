"""Bring a home up to date before anything serves: tables, and at the very first start demo data.

Runs as a process of its own and answers with one JSON object on standard output.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import django
from django.conf import settings
from django.core.checks import WARNING, CheckMessage, Tags, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db.utils import DatabaseError


def main(url: str) -> int:
    try:
        django.setup()
        from execution import hooks

        hooks.load()
        check()
        make_folders()
        call_command("migrate", verbosity=0, interactive=False)
        from config import demo

        kept, is_first = (None, False) if settings.PLACET_PRODUCTION else demo.ensure(settings.PLACET_HOME, url)
    except ImproperlyConfigured as error:
        print(error, file=sys.stderr)
        return 1
    except DatabaseError as error:
        print(f"The database refused: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"threads": settings.PLACET_WEB_THREADS, "demo": kept, "is_first": is_first}))
    return 0


def check() -> None:
    """Settings that are dangerous or cannot work stop the start; what is only odd is said."""
    found = run_checks(tags=[Tags.security])
    errors = [message for message in found if message.is_serious()]
    for message in found:
        if message not in errors and message.is_serious(WARNING):
            print(_told(message), file=sys.stderr)
    if errors:
        raise ImproperlyConfigured("\n".join(map(_told, errors)))


def _told(message: CheckMessage) -> str:
    return f"{message.msg} {message.hint or ''}".strip()


def make_folders() -> None:
    """The filesystem broker expects its folders to be there."""
    settings.PLACET_HOME.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("data_folder_in", "data_folder_out", "control_folder"):
        if folder := settings.CELERY_BROKER_TRANSPORT_OPTIONS.get(name):
            Path(str(folder)).mkdir(mode=0o700, parents=True, exist_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
