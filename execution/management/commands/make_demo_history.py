"""`manage.py make_demo_history --calls 100000`: thirty days of calls, to look at and to measure pages on."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from execution import demohistory


class Command(BaseCommand):
    """Writes once into a home that is no production."""

    help = "Fill this home with people, toolkits, agents and thirty days of calls, each with its chain of events."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--calls", type=int, default=10_000, help="how many calls (10000)")
        parser.add_argument("--events", type=int, help="at least so many audit events (ten for each call)")
        parser.add_argument("--tools", type=int, default=0, help="so many further tools that nobody calls (0)")

    def handle(self, *args: Any, calls: int, events: int | None, tools: int, **options: Any) -> None:
        if settings.PLACET_PRODUCTION:
            raise CommandError("A production home gets no invented calls.")
        if not 1 <= calls <= 10_000_000 or not 0 <= tools <= 100_000 or (events is not None and events < 0):
            raise CommandError(
                "--calls is between 1 and 10,000,000, --tools between 0 and 100,000, --events not below 0."
            )
        try:
            made = demohistory.make(calls=calls, events=10 * calls if events is None else events, tools=tools)
        except demohistory.AlreadyMade as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Wrote {made.calls:,} calls and {made.events:,} events of the last thirty days.")
