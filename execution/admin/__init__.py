"""Calls, attempts and demotions in the web admin."""

from execution.admin.attempt import AttemptAdmin
from execution.admin.call import CallAdmin
from execution.admin.demotion import DemotionAdmin

__all__ = ["AttemptAdmin", "CallAdmin", "DemotionAdmin"]
