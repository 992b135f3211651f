"""Calls, attempts, breakers, demotions and secrets in the web admin."""

from execution.admin.attempt import AttemptAdmin
from execution.admin.breaker import BreakerAdmin
from execution.admin.call import CallAdmin
from execution.admin.demotion import DemotionAdmin
from execution.admin.secret import SecretAdmin

__all__ = ["AttemptAdmin", "BreakerAdmin", "CallAdmin", "DemotionAdmin", "SecretAdmin"]
