"""Evidence in the web admin: events and seals, to read and to take along."""

from audit.admin.event import EventAdmin
from audit.admin.seal import SealAdmin

__all__ = ["EventAdmin", "SealAdmin"]
