from execution.models.attempt import Attempt
from execution.models.call import OPEN, Call, State
from execution.models.callback import Callback
from execution.models.demotion import Demotion
from execution.models.pin import Pin
from execution.models.secret import Secret, SecretUse, SecretVersion

__all__ = ["OPEN", "Attempt", "Call", "Callback", "Demotion", "Pin", "Secret", "SecretUse", "SecretVersion", "State"]
