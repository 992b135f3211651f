"""Undelivered: why a notice did not get through this time, in words that hold no secret."""


class Undelivered(Exception):
    """Worth another attempt; the message is ours, never the other side's or a library's."""

    def __init__(self, message: str, *, retry_after: float = 0.0, is_away: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds that the receiver asked for
        self.is_away = is_away  # nobody answered at all
