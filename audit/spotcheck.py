"""Spot check: what holds of the events that a page shows, without walking everything."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from audit.chain import ORIGIN, known_keys
from audit.evidence import fault_of
from audit.models import Event, Seal
from audit.sealing import statement_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """How far the seals reach: the newest one, and whether it is ours."""

    n: int = 0
    last_id: int = 0
    at: datetime | None = None
    is_signed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What holds of one thing that is shown."""

    events: int = 0
    fault: str = ""
    is_sealed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotCheck:
    """What holds of everything that is shown."""

    sealed: Sealed
    standings: dict[int | str, Standing] = field(default_factory=dict)

    @property
    def events(self) -> int:
        return sum(each.events for each in self.standings.values())

    @property
    def faults(self) -> int:
        return sum(1 for each in self.standings.values() if each.fault)

    @property
    def unsealed(self) -> int:
        return sum(1 for each in self.standings.values() if not each.is_sealed)


def of_events(events: Iterable[Event]) -> SpotCheck:
    """Each event by itself: whether its keyed hash fits what it says, by the id of the event."""
    sealed, keys = newest_seal(), known_keys()
    return SpotCheck(
        sealed=sealed,
        standings={
            event.pk: Standing(
                events=1,
                fault=fault_of(event, event.seq, bytes(event.prev_hash), keys),
                is_sealed=event.pk <= sealed.last_id,
            )
            for event in events
        },
    )


def of_subjects(kind: str, ids: Collection[str]) -> SpotCheck:
    """The whole chain of each subject, by its id; one query for all."""
    sealed, keys = newest_seal(), known_keys()
    standings: dict[int | str, Standing] = {id: Standing(fault="no event tells of it") for id in ids}
    events = Event.objects.filter(subject_kind=kind, subject_id__in=list(ids)).order_by("subject_id", "seq")
    for id, chain in groupby(events, key=lambda event: event.subject_id):
        expected, tail, fault, last = 1, ORIGIN, "", 0
        for event in chain:
            wrong = fault_of(event, expected, tail, keys)
            fault = fault or (wrong and f"event {event.seq}, {event.event}: {wrong}")
            expected, tail, last = event.seq + 1, bytes(event.hash), max(last, event.pk)
        standings[id] = Standing(events=expected - 1, fault=fault, is_sealed=last <= sealed.last_id)
    return SpotCheck(sealed=sealed, standings=standings)


def newest_seal() -> Sealed:
    row = Seal.objects.order_by("-n").first()
    if row is None:
        return Sealed()
    return Sealed(n=row.n, last_id=row.last_id, at=row.sealed_at, is_signed=statement_of(row).is_signed())
