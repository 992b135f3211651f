"""Caller: the agent behind one request, as the credential proved it."""

from dataclasses import dataclass

from policy import scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is asking; small and frozen so that it can be cached by revision."""

    agent_id: int
    name: str
    user_id: int  # the user that holds the agent's permissions
    credential: str  # how it proved itself: "key:AbC12…", "jwt", "jwt:<issuer>" or "anonymous"
    scopes: frozenset[str] | None = None  # what its token is limited to; None: nothing but permissions and rules

    def may(self, scope: str) -> bool:
        return scopes.holds(self.scopes, scope)
