"""Two texts side by side, line against line."""

from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff

MAX_LINES = 4_000  # of both texts together; beyond it the comparison would take too long
CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the old text beside a line of the new one; a gap is None."""

    kind: str  # same | changed | removed | added | gap
    old_number: int | None = None
    old: str = ""
    new_number: int | None = None
    new: str = ""


def rows(old: str, new: str) -> list[Row] | None:
    """The differing lines with a little of what surrounds them; None if the texts are too long to compare."""
    left, right = old.splitlines(), new.splitlines()
    if len(left) + len(right) > MAX_LINES:
        return None
    told: list[Row] = []
    for group in SequenceMatcher(None, left, right).get_grouped_opcodes(CONTEXT):
        told.append(Row("gap"))
        for tag, old_start, old_end, new_start, new_end in group:
            told += _block(tag, left, right, (old_start, old_end), (new_start, new_end))
    return told[1:]


def unified(old: str, new: str) -> list[str] | None:
    """The same as lines that begin with a minus, a plus or a space; None if the texts are too long to compare."""
    left, right = old.splitlines(), new.splitlines()
    if len(left) + len(right) > MAX_LINES:
        return None
    return list(unified_diff(left, right, lineterm="", n=CONTEXT))[2:]


def _block(tag: str, left: list[str], right: list[str], old: tuple[int, int], new: tuple[int, int]) -> list[Row]:
    block = []
    for offset in range(max(old[1] - old[0], new[1] - new[0])):
        at_old, at_new = old[0] + offset, new[0] + offset
        has_old, has_new = at_old < old[1], at_new < new[1]
        kind = "same" if tag == "equal" else "changed" if has_old and has_new else "removed" if has_old else "added"
        block.append(
            Row(
                kind,
                at_old + 1 if has_old else None,
                left[at_old] if has_old else "",
                at_new + 1 if has_new else None,
                right[at_new] if has_new else "",
            )
        )
    return block
