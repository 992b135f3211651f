"""manage.py rotate_keys: seal everything anew under the first of PLACET_SEALING_KEYS."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from execution import resealing


class Command(BaseCommand):
    help = (
        "Seal secrets, open calls, exact answers, JWT secrets and arguments under decision anew with the first key of "
        "PLACET_SEALING_KEYS. First put the new key in front and restart every process, so that nothing more is sealed "
        "with an old one; then run this, as often as you like; then take out the keys that it says seal nothing."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        lost = 0
        for box in resealing.BOXES:
            tally = resealing.reseal(box)
            lost += tally.lost
            unreadable = f", {tally.lost} cannot be opened" if tally.lost else ""
            self.stdout.write(f"{box.words}: {tally.moved} sealed anew, {tally.kept} already were{unreadable}")
        in_use = resealing.keys_in_use()
        first, *others = settings.PLACET_SEALING_KEYS
        for key in others:
            if count := in_use[key]:
                self.stdout.write(f"Key {key} still seals {count}: keep it, and run this again")
            else:
                self.stdout.write(f"Key {key} is no longer needed: nothing is sealed with it")
        unknown = sorted(set(in_use) - {first, *others})
        if unknown:
            self.stdout.write(f"Not among PLACET_SEALING_KEYS, but still sealing something: {', '.join(unknown)}")
        if lost:
            raise CommandError(f"{lost} cannot be opened: their key is missing, or they were altered")
