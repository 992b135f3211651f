"""manage.py export_policy [NUMBER]: a revision as the file whose import changes nothing."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from policy import policyfile, revisions
from policy.models import Revision
from policy.rulespec import RuleSpec


class Command(BaseCommand):
    help = "Prints the rules of a revision; without a number, of the live one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("number", nargs="?", type=int, help="which revision")
        parser.add_argument("--json", action="store_true", help="JSON instead of YAML")

    def handle(self, *args: Any, number: int | None, json: bool, **options: Any) -> None:
        revision = _revision(number)
        rules = revisions.rules_of(revision)
        text = _as_json(rules, revision.note) if json else policyfile.written(rules, note=revision.note)
        self.stdout.write(text, ending="")


def _as_json(rules: list[RuleSpec], note: str) -> str:
    return json.dumps(policyfile.document(rules, note=note), indent=2, ensure_ascii=False) + "\n"


def _revision(number: int | None) -> Revision:
    found = revisions.live() if number is None else Revision.objects.filter(number=number).first()
    if found is None:
        raise CommandError(
            "No policy revision is live." if number is None else f"There is no policy revision {number}."
        )
    return found
