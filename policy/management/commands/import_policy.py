"""manage.py import_policy FILE: the rules of a file become a draft, or at once the live policy."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from policy import policyfile, revisions, rulechecks
from policy.models import Revision
from policy.policyfile import PolicyFile, PolicyFileError


class Command(BaseCommand):
    help = "Imports a policy; a file whose rules some revision already has makes no second one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a policy in YAML or JSON")
        parser.add_argument("--activate", action="store_true", help="make it live")

    def handle(self, *args: Any, file: Path, activate: bool, **options: Any) -> None:
        file = Path(file)
        try:
            policy = policyfile.read_file(file)
            if problems := rulechecks.problems(policy.rules):
                raise policy.located(problems[0])
            with transaction.atomic():
                line = _imported(policy, is_to_activate=activate)
        except PolicyFileError as error:
            raise CommandError(_told(file, error)) from error
        except revisions.RevisionError as error:
            raise CommandError(f"{file}: {error} Nothing was imported.") from error
        self.stdout.write(line)
        for warning in rulechecks.warnings(policy.rules):
            self.stdout.write(f"warning: {warning}")


def _imported(policy: PolicyFile, *, is_to_activate: bool) -> str:
    """Writes what is new, activates what is asked for, and says what happened."""
    known = revisions.with_rules(policy.rules)
    revision = known or revisions.new_draft(by=None, rules=policy.rules, note=policy.note)
    said = f"unchanged: revision {revision.number}" if known else f"drafted: revision {revision.number}"
    if not is_to_activate:
        return said
    if revision.state == Revision.State.ACTIVE:
        return f"{said}, live already"
    revisions.activate(revision, by=None)
    return f"{said}, live now"


def _told(file: Path, error: PolicyFileError) -> str:
    place = f"{file}:{error.line}" if error.line else str(file)
    reason = ": ".join(part for part in (error.path, error.reason) if part)
    return f"{place}: {reason.removesuffix('.')}. Nothing was imported."
