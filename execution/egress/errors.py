"""How an exchange with the outside ends badly; each says whether the other side may have got the request."""

from execution.traffic import NO_TRAFFIC, Traffic


class EgressError(Exception):
    """Nothing useful came back. `is_sent` is False only if provably no byte of the request left."""

    can_retry = False

    def __init__(self, reason: str, *, is_sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_sent = is_sent
        self.traffic: Traffic = NO_TRAFFIC


class EgressDenied(EgressError):
    """We do not go there, or not with this; found out before a byte of the request left."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, is_sent=False)


class EgressFailed(EgressError):
    """The way there broke, or what came back is not an answer."""

    def __init__(self, reason: str, is_sent: bool, *, can_retry: bool = True) -> None:
        super().__init__(reason, is_sent=is_sent)
        self.can_retry = can_retry


class RedirectRefused(EgressFailed):
    """The other side wants to send us somewhere else, where nobody allowed us to go."""

    def __init__(self, status: int) -> None:
        reason = f"redirect_refused: the answer {status} points elsewhere, and redirects are not followed"
        super().__init__(reason, True, can_retry=False)


class EgressTimeout(EgressError):
    """The deadline came first."""

    can_retry = True

    def __init__(self, is_sent: bool) -> None:
        super().__init__("no answer in time", is_sent=is_sent)


class EgressCancelled(EgressError):
    """Nobody wants the answer any more."""

    def __init__(self, is_sent: bool) -> None:
        super().__init__("cancelled", is_sent=is_sent)


class AnswerTooLarge(EgressError):
    """The answer, as it came or once unpacked, is larger than anyone wanted."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer is larger than {limit} bytes", is_sent=True)
        self.limit = limit
