"""manage.py verify_audit: is the evidence as it was written?"""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

import orjson
from django.core.management.base import BaseCommand

from audit.report import Report
from audit.verification import verify


class Command(BaseCommand):
    """Ends with 0 and counts, or with 1 and the first bad row."""

    help = "Check every event's keyed hash, every chain and every seal; name the first bad row."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--max-unsealed-age",
            type=float,
            metavar="SECONDS",
            help="also fail if an event has been waiting longer than this for its seal (for monitoring)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        seconds = options["max_unsealed_age"]
        report = verify(max_unsealed_age=None if seconds is None else timedelta(seconds=seconds))
        self.stdout.write(orjson.dumps(_told(report)).decode() if options["json"] else _spoken(report))
        if not report.is_intact:
            raise SystemExit(1)


def _told(report: Report) -> dict[str, Any]:
    found = report.findings.all()
    return {
        "ok": report.is_intact,
        "events": report.events,
        "subjects": report.subjects,
        "seals": report.seals,
        "sealed": report.sealed,
        "unsealed": report.unsealed,
        "torn_lines": report.torn_lines,
        "bad": report.findings.count,
        "first_bad": found[0].told() if found else None,
        "more_bad": [finding.told() for finding in found[1:20]],
    }


def _spoken(report: Report) -> str:
    counts = f"{report.events} events of {report.subjects} subjects, {report.seals} seals"
    waiting = f"; not yet sealed: {report.unsealed}" if report.unsealed else ""
    if report.is_intact:
        return f"Intact: {counts}{waiting}."
    return f"NOT intact: {report.first}\n({report.findings.count} findings in {counts}{waiting})"
