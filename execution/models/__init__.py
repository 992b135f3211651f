from execution.models.attempt import Attempt
from execution.models.call import OPEN, Call, State
from execution.models.demotion import Demotion

__all__ = ["OPEN", "Attempt", "Call", "Demotion", "State"]
