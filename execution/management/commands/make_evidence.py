"""manage.py make_evidence CALL_ID --out FILE: the evidence pack of one call, at the shell."""

import os
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from execution.evidence import visible_call, write_pack
from execution.scope import Scope
from execution.viewer import SHELL


class Command(BaseCommand):
    """Writes a new file, readable by its owner only; never over an old one."""

    help = "Write the events of a call, what ties them to signed seals, and a verifier into a zip."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("call", metavar="CALL_ID", help="the id of the call, as its page and the API show it")
        parser.add_argument("--out", metavar="FILE", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            id = UUID(options["call"])
        except ValueError:
            raise CommandError(f"{options['call']!r} is not the id of a call, such as {UUID(int=0)}") from None
        if visible_call(id, SHELL) is None:
            raise CommandError(f"There is no call {id}.")
        out = Path(options["out"])
        try:
            handle = os.open(out, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error.strerror}.") from error
        try:
            with os.fdopen(handle, "w+b") as file:
                packed = write_pack(file, Scope(call=id), SHELL)
        except BaseException:
            out.unlink(missing_ok=True)
            raise
        waiting = f", {packed.unsealed} of them not sealed yet" if packed.unsealed else ""
        self.stdout.write(f"{out}: {packed.events} events{waiting}, {packed.seals} seals.")
