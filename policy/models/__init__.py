from policy.models.agent import Agent
from policy.models.credential import Credential

__all__ = ["Agent", "Credential"]
