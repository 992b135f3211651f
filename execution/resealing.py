"""Everything that is sealed, sealed anew under the key that comes first; no fact changes by it."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Model

from execution import callbacks, claim
from execution.models import Call, Callback, SecretVersion
from execution.secretsources import stored
from policy import agents, approvals
from policy.models import Agent, Approval
from policy.sealedbox import Unsealable, key_of, seal, unseal

BATCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A column that holds sealed bytes, and what they are bound to in each row."""

    words: str
    model: type[Model]
    column: str
    bound_to: Callable[[Any], str]

    def rows(self) -> Iterator[tuple[Any, bytes]]:
        """Every row that holds something, read in small portions, so that a large table is never held."""
        filled = self.model._default_manager.filter(**{f"{self.column}__isnull": False}).order_by("pk")
        portion = list(filled[:BATCH])
        while portion:
            yield from ((row, bytes(getattr(row, self.column))) for row in portion)
            portion = list(filled.filter(pk__gt=portion[-1].pk)[:BATCH])


BOXES = (
    Box(
        words="versions of secrets",
        model=SecretVersion,
        column="sealed",
        bound_to=lambda row: stored.box(row.secret_id, row.number),
    ),
    Box(words="open calls", model=Call, column="sealed", bound_to=lambda row: claim.box(row.pk)),
    Box(words="exact answers", model=Call, column="sealed_answer", bound_to=lambda row: claim.answer_box(row.pk)),
    Box(
        words="tokens of late answers",
        model=Callback,
        column="sealed_token",
        bound_to=lambda row: callbacks.token_box(row.call_id, row.fence),
    ),
    Box(
        words="secrets of waiting attempts",
        model=Callback,
        column="sealed_needles",
        bound_to=lambda row: callbacks.needles_box(row.call_id, row.fence),
    ),
    Box(
        words="JWT secrets of agents",
        model=Agent,
        column="sealed_jwt_secret",
        bound_to=lambda row: agents.jwt_box(row.pk),
    ),
    Box(
        words="arguments that people decide about",
        model=Approval,
        column="sealed_arguments",
        bound_to=lambda row: approvals.box(row.pk),
    ),
)


@dataclass(slots=True)
class Tally:
    """How many rows were sealed anew, were already, or cannot be opened."""

    moved: int = 0
    kept: int = 0
    lost: int = 0


def reseal(box: Box) -> Tally:
    """One column under the first key; stopped half-way, the next run goes on where it was."""
    first = next(iter(settings.PLACET_SEALING_KEYS))
    tally = Tally()
    for row, sealed in box.rows():
        if key_of(sealed) == first:
            tally.kept += 1
            continue
        place = box.bound_to(row)
        try:
            fresh = seal(unseal(sealed, bound_to=place), bound_to=place)
        except Unsealable:
            tally.lost += 1
            continue
        # Only if it is still what was opened: whatever happened to the row meanwhile counts more.
        same = box.model._default_manager.filter(pk=row.pk, **{box.column: sealed})
        tally.moved += same.update(**{box.column: fresh})
    return tally


def keys_in_use() -> Counter[str]:
    """How many rows each key seals, by its id."""
    return Counter(key_of(sealed) for box in BOXES for _, sealed in box.rows())
