from policy.models.accessrequest import AccessRequest
from policy.models.agent import Agent
from policy.models.approval import Approval
from policy.models.breakglass import BreakGlass
from policy.models.credential import Credential
from policy.models.difference import Difference
from policy.models.grant import Grant
from policy.models.keyuse import KeyUse
from policy.models.meter import Meter
from policy.models.notice import Notice
from policy.models.replay import Replay
from policy.models.review import Review
from policy.models.revision import Revision
from policy.models.rule import Rule
from policy.models.vote import Vote

__all__ = [
    "AccessRequest",
    "Agent",
    "Approval",
    "BreakGlass",
    "Credential",
    "Difference",
    "Grant",
    "KeyUse",
    "Meter",
    "Notice",
    "Replay",
    "Review",
    "Revision",
    "Rule",
    "Vote",
]
