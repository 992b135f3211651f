"""manage.py export_toolkit NAME[@x.y.z]: the manifest of a version, as YAML or JSON."""

import json
import re
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from registry import yamlwriting
from registry.manifests import export_manifest
from registry.models import ToolkitVersion

_FORM = re.compile(r"([A-Za-z0-9_]+)(?:@([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9}))?", re.ASCII)


class Command(BaseCommand):
    help = "Prints the manifest of a version; without a number, of the latest one that is callable, or else a draft."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("version", help="Calculator or Calculator@1.1.0")
        parser.add_argument("--json", action="store_true", help="JSON instead of YAML")

    def handle(self, *args: Any, version: str, json: bool, **options: Any) -> None:
        document = export_manifest(_version(version))
        self.stdout.write(_as_json(document) if json else yamlwriting.write(document), ending="")


def _as_json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _version(text: str) -> ToolkitVersion:
    match = _FORM.fullmatch(text)
    if match is None:
        raise CommandError(f"{text} is not a toolkit's name, such as Calculator or Calculator@1.1.0.")
    versions = ToolkitVersion.objects.filter(toolkit__name__iexact=match[1]).select_related("toolkit")
    if match[2]:
        versions = versions.filter(major=int(match[2]), minor=int(match[3]), patch=int(match[4]))
    numbered = versions.order_by("-major", "-minor", "-patch")
    found = numbered.callable().first() or numbered.first()
    if found is None:
        raise CommandError(f"There is no version {text}.")
    return found
