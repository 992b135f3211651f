"""Calls, attempts, callbacks, breakers, demotions, pins, secrets and sessions in the web admin."""

from execution.admin.attempt import AttemptAdmin
from execution.admin.breaker import BreakerAdmin
from execution.admin.call import CallAdmin
from execution.admin.callback import CallbackAdmin
from execution.admin.demotion import DemotionAdmin
from execution.admin.pin import PinAdmin
from execution.admin.secret import SecretAdmin
from execution.admin.session import SessionAdmin

__all__ = [
    "AttemptAdmin",
    "BreakerAdmin",
    "CallAdmin",
    "CallbackAdmin",
    "DemotionAdmin",
    "PinAdmin",
    "SecretAdmin",
    "SessionAdmin",
]
