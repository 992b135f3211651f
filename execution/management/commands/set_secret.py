"""manage.py set_secret NAME: a secret, or a new version of it, from standard input."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from execution import secretstore
from execution.models import Secret
from execution.secretstore import SecretError
from execution.secretvalues import MAX_CHARACTERS, ValueProblem, from_text


class Command(BaseCommand):
    help = (
        "Keep a secret. Its value is read from standard input: a text, or a JSON object of texts such as "
        '{"client_id": "…", "client_secret": "…"}. If the secret exists, this is its new version. '
        "With --source env, file or vault the value lies there, and nothing is read."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--description", help="what it is for")
        parser.add_argument(
            "--toolkit", metavar="TOOLKIT", action="append", help="may use it, repeatable; without any, all may"
        )
        parser.add_argument("--source", choices=Secret.Source.values, help="where the value lies (stored)")
        parser.add_argument("--path", default="", help="where it lies in Vault, below the mount (the name)")

    def handle(self, *args: Any, **options: Any) -> None:
        secret = Secret.objects.filter(name=options["name"]).first()
        source = options["source"] or Secret.Source.STORED
        try:
            _check_source(secret, source)
            values = _value() if source == Secret.Source.STORED else None
            with transaction.atomic():
                said = self._kept(secret, values, options)
        except (SecretError, ValueProblem) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(said)

    def _kept(self, secret: Secret | None, values: Any, options: dict[str, Any]) -> str:
        asked: dict[str, Any] = {"path": options["path"], "toolkits": options["toolkit"] or ()}
        if secret is None:
            asked |= {"source": options["source"] or Secret.Source.STORED, "description": options["description"] or ""}
            made = secretstore.create(options["name"], values, actor="shell", **asked)
            return f"{made.name} is kept" + (", version 1" if values is not None else f"; its source is {made.source}")
        version = secretstore.add_version(secret, values, actor="shell") if values is not None else None
        changed = {
            "description": options["description"],
            "path": options["path"] or None,
            "toolkits": options["toolkit"],
        }
        secretstore.change(secret, actor="shell", **changed)
        return f"{secret.name} is kept" + (f", version {version.number}" if version is not None else "")


def _check_source(secret: Secret | None, source: str) -> None:
    """A value for a secret that lies elsewhere would be dropped, and a source cannot be changed."""
    if secret is None or secret.source == source:
        return
    if source == Secret.Source.STORED:
        raise SecretError(
            f"The source of {secret.name} is {secret.source}; the value is set there. "
            f"Say --source {secret.source} to change anything else about it."
        )
    raise SecretError(f"The source of {secret.name} is {secret.source}; delete it to begin anew.")


def _value() -> Any:
    if sys.stdin.isatty():
        sys.stderr.write("The value, then the end of the input (Ctrl-D):\n")
    raw = sys.stdin.buffer.read(4 * MAX_CHARACTERS * 50)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise SecretError("The value is not UTF-8.") from None
    if not text.strip():
        raise SecretError("A secret cannot be empty.")
    return from_text(text)
