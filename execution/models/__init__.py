from execution.models.attempt import Attempt
from execution.models.call import OPEN, Call, State, new_id
from execution.models.demotion import Demotion

__all__ = ["OPEN", "Attempt", "Call", "Demotion", "State", "new_id"]
