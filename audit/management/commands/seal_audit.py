"""manage.py seal_audit: seal what is not sealed yet, now."""

from typing import Any

from django.core.management.base import BaseCommand

from audit.sealing import seal_new_events


class Command(BaseCommand):
    """Does once what the timetable does every few seconds."""

    help = "Sign a Merkle root over all events that are not sealed yet, into the table and seals.jsonl."

    def handle(self, *args: Any, **options: Any) -> None:
        seal = seal_new_events()
        if seal is None:
            self.stdout.write("Nothing sealed: no new events, or another sealer or a long transaction is in the way.")
        else:
            self.stdout.write(f"Seal {seal.n} covers {seal.count} events up to id {seal.last_id}.")
