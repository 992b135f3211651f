"""Evidence: one subject's events, checked link by link right now, and the seals that cover them."""

from dataclasses import dataclass

from audit.chain import ORIGIN, known_keys, row_hash
from audit.merkle import root_of
from audit.models import Event, Seal
from audit.sealing import statement_of
from audit.stream import moment

MANY = 5_000  # events under one seal that are read again while a person waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One event, what is wrong with it (nothing, if it holds), and the number of the seal over it."""

    event: Event
    fault: str
    seal: int | None

    @property
    def hash(self) -> str:
        return bytes(self.event.hash).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the chain of one subject proves at this moment."""

    links: tuple[Link, ...]
    broken_seals: tuple[int, ...] = ()

    @property
    def fault(self) -> str:
        """The first thing that is wrong, with the place of the event in the chain."""
        for link in self.links:
            if link.fault:
                return f"event {link.event.seq}, {link.event.event}: {link.fault}"
        for seal in self.broken_seals:
            return f"seal {seal} is not signed by us, or no longer fits the events it was made over"
        return ""

    @property
    def is_sealed(self) -> bool:
        return bool(self.links) and all(link.seal is not None for link in self.links)

    @property
    def seals(self) -> tuple[int, ...]:
        return tuple(sorted({link.seal for link in self.links if link.seal is not None}))


def evidence_of(kind: str, id: str) -> Evidence:
    """Recomputes every hash of the subject's chain from the rows as they are."""
    events = list(Event.objects.filter(subject_kind=kind, subject_id=id).order_by("seq"))
    seals = _Seals(events)
    keys, links = known_keys(), []
    expected, tail = 1, ORIGIN
    for event in events:
        links.append(Link(event=event, fault=fault_of(event, expected, tail, keys), seal=seals.over.get(event.pk)))
        expected, tail = event.seq + 1, bytes(event.hash)
    return Evidence(links=tuple(links), broken_seals=tuple(sorted(seals.broken)))


def fault_of(event: Event, expected: int, tail: bytes, keys: dict[str, bytes]) -> str:
    """What is wrong with one event, if this is where its chain should be; nothing if it holds."""
    if event.seq != expected:
        return f"what came before it is missing: it should be event {expected}"
    if bytes(event.prev_hash) != tail:
        return "it does not follow from the event before it"
    key = keys.get(event.key_id)
    if key is None:
        return f"it was written under a key that is not known here ({event.key_id})"
    own = row_hash(
        key,
        event.key_id,
        event.subject_kind,
        event.subject_id,
        event.seq,
        event.event,
        event.actor,
        moment(event.at),
        event.outcome,
        event.detail,
        event.trace_id,
        bytes(event.prev_hash),
    )
    return "" if own == bytes(event.hash) else "its hash does not fit what it says"


class _Seals:
    """The seals over some events; asks the database once per seal, not once per event."""

    def __init__(self, events: list[Event]) -> None:
        self.over: dict[int, int] = {}  # event id to seal number
        self.broken: set[int] = set()
        newest = Seal.objects.order_by("-n").first()
        covering, absent = None, []
        for id in sorted((event.pk for event in events), reverse=True):
            if newest is None or id > newest.last_id:
                continue
            if covering is None or not covering.first_id <= id <= covering.last_id:
                covering = Seal.objects.filter(first_id__lte=id, last_id__gte=id).order_by("-n").first()
                absent = self._checked(covering) if covering else []
            if covering is not None and not any(start <= id <= end for start, end in absent):
                self.over[id] = covering.n

    def _checked(self, seal: Seal) -> list[tuple[int, int]]:
        """The ids that the seal does not vouch for: those it knew to be absent, or all if it no longer holds."""
        statement = statement_of(seal)
        if statement.is_signed() and _fits(seal):
            return statement.absent()
        self.broken.add(seal.n)
        return [(seal.first_id, seal.last_id)]


def _fits(seal: Seal) -> bool:
    """Whether the events in the seal's range are still those it was made over; one over very many is not read here."""
    if seal.count > MANY:
        return True
    sealed = Event.objects.filter(id__gte=seal.first_id, id__lte=seal.last_id).order_by("id")
    found = sealed.values_list("id", "hash")[: MANY + 1]
    return root_of((id, bytes(own)) for id, own in found) == bytes(seal.merkle_root)
