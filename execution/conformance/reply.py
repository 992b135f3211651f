"""Reply: what an endpoint answered, as every runtime's endpoint tells it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from execution import envelope
from registry import strictjson

MAX_ANSWER = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A status in the protocol's own words, whether that status means an answer at all, and the body."""

    status: str
    is_answer: bool
    is_our_fault: bool = False  # the status blames the request, not the server
    is_unproven: bool = False  # the status says that the credentials do not open
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def value(self) -> Any:
        """The body's JSON, or None if it is none."""
        try:
            return strictjson.loads(self.body, max_bytes=MAX_ANSWER)
        except strictjson.StrictJSONError:
            return None

    @property
    def response(self) -> dict[str, Any] | None:
        """The body, if it presents itself as a response of the contract."""
        value = self.value
        return value if envelope.is_response(value) else None

    @property
    def error(self) -> dict[str, Any]:
        """The error that the response tells of; empty if there is none."""
        found = (self.response or {}).get("error")
        return found if isinstance(found, dict) else {}

    @property
    def kind(self) -> str:
        """How the answer is classified: two answers to the same request must not differ in it."""
        response = self.response
        if response is None:
            return self.status
        return f"{response['status']}/{self.error['code']}" if self.error.get("code") else str(response["status"])

    @property
    def everything(self) -> str:
        """All that came back, for whoever looks for what must not."""
        words = [f"{name}: {value}" for name, value in self.headers.items()]
        return "\n".join([*words, self.body.decode("utf-8", "replace")])
