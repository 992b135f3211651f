"""manage.py import_toolkit PATH: a manifest, a folder of manifests, or a folder of Python tools becomes versions."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from registry.comparisons import against_predecessor
from registry.manifests import ImportResult, ManifestError, import_folder, import_manifest
from registry.publishing import PublishingError, publish, reasons_for_review, request_review


class Command(BaseCommand):
    help = "Imports a toolkit; all of it is written, or nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="a manifest, a folder with manifests, or a folder of Python tools")
        parser.add_argument("--publish", action="store_true", help="publish what was imported")
        parser.add_argument("--reviewer", metavar="USER", help="who reviewed it; high and critical tools need one")

    def handle(self, *args: Any, path: Path, publish: bool, reviewer: str | None, **options: Any) -> None:
        path = Path(path)
        if reviewer and not publish:
            raise CommandError("--reviewer goes with --publish.")
        if not path.exists():
            raise CommandError(f"{path}: there is no such file or folder.")
        person = self._person(reviewer) if reviewer else None
        try:
            with transaction.atomic():
                results = import_folder(path, by=None) if path.is_dir() else [import_manifest(path, by=None)]
                lines = [line for result in results for line in _told(result, is_to_publish=publish, reviewer=person)]
        except (ManifestError, PublishingError) as error:
            raise CommandError(f"{str(error).removesuffix('.')}. Nothing was imported.") from error
        for line in lines:
            self.stdout.write(line)

    def _person(self, username: str) -> User:
        try:
            return User.objects.get(username=username)
        except User.DoesNotExist:
            raise CommandError(f"There is no user named {username}.") from None


def _told(result: ImportResult, *, is_to_publish: bool, reviewer: User | None) -> list[str]:
    """Publishes if asked, and says what happened to one version."""
    version = result.version
    lines = [f"{version}: {_finish(result, reviewer) if is_to_publish else result.outcome}"]
    if (comparison := against_predecessor(version)) is not None:
        lines.append(f"  compared with {comparison.old}: {comparison.verdict.level}")
        lines += [f"    {reason}" for reason in comparison.verdict.reasons]
    return lines


def _finish(result: ImportResult, reviewer: User | None) -> str:
    version = result.version
    if not version.is_draft:
        return f"{result.outcome}, already {version.state}"
    if reviewer is None and (reasons := reasons_for_review(version)):
        request_review(version, by=None)
        return f"{result.outcome}, waits for a review: {'; '.join(reasons)}"
    publish(version, by=None, reviewed_by=reviewer)
    return f"{result.outcome}, published" + (f", reviewed by {reviewer.username}" if reviewer else "")
