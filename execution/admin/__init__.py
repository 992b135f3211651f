"""Calls, attempts, breakers, demotions, secrets and sessions in the web admin."""

from execution.admin.attempt import AttemptAdmin
from execution.admin.breaker import BreakerAdmin
from execution.admin.call import CallAdmin
from execution.admin.demotion import DemotionAdmin
from execution.admin.secret import SecretAdmin
from execution.admin.session import SessionAdmin

__all__ = ["AttemptAdmin", "BreakerAdmin", "CallAdmin", "DemotionAdmin", "SecretAdmin", "SessionAdmin"]
