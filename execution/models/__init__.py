from execution.models.attempt import Attempt
from execution.models.call import OPEN, Call, State
from execution.models.demotion import Demotion
from execution.models.secret import Secret, SecretUse, SecretVersion

__all__ = ["OPEN", "Attempt", "Call", "Demotion", "Secret", "SecretUse", "SecretVersion", "State"]
