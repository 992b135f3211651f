"""manage.py conform URL: does a tool's endpoint keep Tool Contract v1?"""

import json
import os
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from execution.conformance import Outcome, Probe, Verdict, judge
from execution.conformance.endpoints import ENDPOINTS
from execution.egress import EgressDenied
from registry import strictjson


class Command(BaseCommand):
    help = (
        "Ask a tool's endpoint everything that Tool Contract v1 promises, and print what it keeps. The tool is really "
        "called, some thirty times: give it an --input that may run that often. Private addresses are asked only if "
        "PLACET_EGRESS_ALLOW opens them. Ends with 1 if anything failed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="the endpoint, as a manifest would name it")
        parser.add_argument("--runtime", choices=sorted(ENDPOINTS), required=True)
        parser.add_argument("--tool", default="conformance_probe", help="the tool's name in the requests")
        parser.add_argument("--input", default="{}", metavar="JSON", help="an input that the tool answers with ok")
        parser.add_argument("--fail-input", metavar="JSON", help="one with which it fails")
        parser.add_argument("--slow-input", metavar="JSON", help="one that takes longer than half a second")
        parser.add_argument("--denied-input", metavar="JSON", help="one that it refuses to its caller")
        parser.add_argument("--token-env", metavar="NAME", help="the environment variable that holds the credentials")
        parser.add_argument("--header", default="Authorization", help="sends them, as Bearer if it is Authorization")
        parser.add_argument("--timeout", type=float, default=5.0, help="seconds for each request (5)")
        parser.add_argument("--json", action="store_true", help="JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0.1 <= options["timeout"] <= 600:
            raise CommandError("--timeout must be between 0.1 and 600 seconds")
        probe = Probe(
            endpoint=ENDPOINTS[options["runtime"]](options["url"]),
            runtime=options["runtime"],
            tool=options["tool"],
            input=_object(options, "input") or {},
            fail=_object(options, "fail_input"),
            slow=_object(options, "slow_input"),
            denied=_object(options, "denied_input"),
            credentials=_credentials(options),
            timeout=options["timeout"],
        )
        try:
            verdicts = list(judge(probe))
        except EgressDenied as error:
            raise CommandError(f"The endpoint may not be asked: {error.reason}") from error
        self.stdout.write(_as_json(verdicts) if options["json"] else _as_table(verdicts))
        if any(verdict.outcome is Outcome.FAIL for verdict in verdicts):
            raise SystemExit(1)


def _object(options: dict[str, Any], name: str) -> dict[str, Any] | None:
    if options[name] is None:
        return None
    try:
        value = strictjson.loads(options[name].encode("utf-8", "surrogateescape"))
    except strictjson.StrictJSONError as error:
        raise CommandError(f"--{name.replace('_', '-')} is not JSON: {error.message}") from error
    if not isinstance(value, dict):
        raise CommandError(f"--{name.replace('_', '-')} must be a JSON object")
    return value


def _credentials(options: dict[str, Any]) -> dict[str, str]:
    name = options["token_env"]
    if name is None:
        return {}
    token = os.environ.get(name, "").strip()
    if not token:
        raise CommandError(f"The environment variable {name} is empty")
    header = options["header"]
    return {header: f"Bearer {token}" if header.lower() == "authorization" else token}


def _as_json(verdicts: list[Verdict]) -> str:
    count = Counter(verdict.outcome for verdict in verdicts)
    told = {
        "conforms": not count[Outcome.FAIL],
        "counts": {outcome.value: count[outcome] for outcome in Outcome},
        "checks": [verdict.as_json() for verdict in verdicts],
    }
    return json.dumps(told, indent=2)


def _as_table(verdicts: list[Verdict]) -> str:
    rows = [("group", "check", "verdict", "reason")]
    rows += [(verdict.group, verdict.check, verdict.outcome.value, verdict.reason) for verdict in verdicts]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in [*widths, 6]))
    count = Counter(verdict.outcome for verdict in verdicts)
    summary = (
        f"{count[Outcome.PASS]} passed, {count[Outcome.FAIL]} failed, {count[Outcome.NOT_APPLICABLE]} not applicable"
    )
    return "\n".join([*lines, "", summary])
