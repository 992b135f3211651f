"""The two tables of evidence: events, and the seals over them."""

from audit.models.event import Event
from audit.models.seal import Seal

__all__ = ["Event", "Seal"]
