"""Walls: what a tool's process can reach, as its host is told when it starts."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Walls:
    """A host serves only calls with the very same ones."""

    opened: tuple[str, ...] | None = None  # of placet.walls.OPENINGS; None: there are no walls
    hidden: tuple[str, ...] = ()  # folders that no opening leads to
    kept: str = ""  # the toolkit's own folder that stays between calls, where the tool may use one
    is_confined: bool = False  # one call long, with narrow limits, and never without a wall

    def options(self, home: Path) -> list[str]:
        """The words on a host's command line; the homes of other hosts are hidden too."""
        words = ["--walls", "confined"] if self.is_confined else []
        if self.opened is not None:
            words += ["--open", ",".join(self.opened), "--hide", os.pathsep.join((*self.hidden, str(home.parent)))]
        if self.kept:
            words += ["--keep", self.kept]
        return words


OPEN = Walls()
_TOLD: set[str] = set()


def tell(missing: Any) -> None:
    """Warns once of each wall that this machine does not have."""
    for why in map(str, missing or ()):
        if why not in _TOLD:
            _TOLD.add(why)
            logger.warning("Tools of low and medium risk run with a wall less: %s", why)
