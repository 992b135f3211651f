"""Traffic: what an attempt sent and received over the network, kept with its row."""

from typing import NamedTuple


class Traffic(NamedTuple):
    """Bytes of requests and answers on the wire, and the status that the other side answered with."""

    sent: int = 0
    received: int = 0
    status: str = ""  # "503", "UNAVAILABLE": in the words of the protocol; empty if there was no answer

    def __add__(self, other: object) -> "Traffic":
        """Two exchanges of one attempt; the later status counts, if there was one."""
        if not isinstance(other, Traffic):
            return NotImplemented
        return Traffic(self.sent + other.sent, self.received + other.received, other.status or self.status)


NO_TRAFFIC = Traffic()
