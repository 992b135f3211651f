"""Evidence: one subject's events, checked link by link right now, and the seals that cover them."""

from dataclasses import dataclass

from audit.chain import ORIGIN, known_keys, row_hash
from audit.models import Event, Seal
from audit.sealing import statement_of
from audit.stream import moment


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

    @property
    def fault(self) -> str:
        """The first thing that is wrong, with the place of the event in the chain."""
        for link in self.links:
            if link.fault:
                return f"event {link.event.seq}, {link.event.event}: {link.fault}"
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
    seals = _seals_over(events)
    keys, links = known_keys(), []
    expected, tail = 1, ORIGIN
    for event in events:
        links.append(Link(event=event, fault=_fault(event, expected, tail, keys), seal=seals.get(event.pk)))
        expected, tail = event.seq + 1, bytes(event.hash)
    return Evidence(links=tuple(links))


def _fault(event: Event, expected: int, tail: bytes, keys: dict[str, bytes]) -> str:
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


def _seals_over(events: list[Event]) -> dict[int, int]:
    """Event id to seal number; a seal counts if its signature holds and it did not say that the id was absent."""
    newest = Seal.objects.order_by("-n").first()
    covering, absent, found = newest, _absent(newest), {}
    for id in sorted((event.pk for event in events), reverse=True):
        if newest is None or id > newest.last_id:
            continue
        if covering is None or not covering.first_id <= id <= covering.last_id:
            covering = Seal.objects.filter(first_id__lte=id, last_id__gte=id).order_by("-n").first()
            absent = _absent(covering)
        if covering is not None and not any(start <= id <= end for start, end in absent):
            found[id] = covering.n
    return found


def _absent(seal: Seal | None) -> list[tuple[int, int]]:
    if seal is None:
        return []
    statement = statement_of(seal)
    return statement.absent() if statement.is_signed() else [(seal.first_id, seal.last_id)]
