"""Address: where the web listens, which the start and the settings both have to say."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen, and how to get there from this machine."""

    host: str
    port: int

    @property
    def reachable_host(self) -> str:
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)

    @property
    def site(self) -> str:
        """The reachable host as it stands in a URL and in the header Host."""
        return f"[{self.reachable_host}]" if ":" in self.reachable_host else self.reachable_host

    @property
    def url(self) -> str:
        return f"http://{self.site}:{self.port}"
