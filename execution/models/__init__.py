from execution.models.attempt import Attempt
from execution.models.breaker import Breaker
from execution.models.budget import RetryBudget
from execution.models.call import OPEN, Call, State
from execution.models.callback import Callback
from execution.models.calltotal import CallTotal, TotalledSpan
from execution.models.demotion import Demotion
from execution.models.elicitation import Elicitation
from execution.models.mcpsession import McpSession
from execution.models.pack import Pack
from execution.models.pin import Pin
from execution.models.savedfilter import SavedFilter
from execution.models.secret import Secret, SecretUse, SecretVersion
from execution.models.session import Pull, Session

__all__ = [
    "OPEN",
    "Attempt",
    "Breaker",
    "Call",
    "CallTotal",
    "Callback",
    "Demotion",
    "Elicitation",
    "McpSession",
    "Pack",
    "Pin",
    "Pull",
    "RetryBudget",
    "SavedFilter",
    "Secret",
    "SecretUse",
    "SecretVersion",
    "Session",
    "State",
    "TotalledSpan",
]
