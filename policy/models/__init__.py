from policy.models.agent import Agent
from policy.models.credential import Credential
from policy.models.review import Review

__all__ = ["Agent", "Credential", "Review"]
