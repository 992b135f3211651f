"""What a tool is given besides its arguments: secrets, tokens, who asks, and a way to tell how it goes."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

Emit = Callable[[dict[str, Any]], None]


class Secrets(Mapping[str, str]):
    """Values by name that no repr, format or pickle ever shows."""

    __slots__ = ("_kind", "_values")

    def __init__(self, values: Mapping[str, str] | None = None, kind: str = "secret") -> None:
        self._values = dict(values or {})
        self._kind = kind

    def __getitem__(self, name: str) -> str:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"no {self._kind} named {name!r} was given; does the tool require it?") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __repr__(self) -> str:
        return f"<{len(self)} hidden>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("secrets do not travel")


class Caller:
    """Who asks: the agent's name, and the user it asks for, if any."""

    __slots__ = ("agent", "user_id")

    def __init__(self, agent: str = "", user_id: str = "") -> None:
        self.agent = agent
        self.user_id = user_id

    def __repr__(self) -> str:
        return f"Caller(agent={self.agent!r}, user_id={self.user_id!r})"


class Log:
    """Lines for the people who run the tool; they are kept with the call, redacted and bounded."""

    __slots__ = ("_emit",)

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def debug(self, message: str, *args: Any) -> None:
        self._write("debug", message, args)

    def info(self, message: str, *args: Any) -> None:
        self._write("info", message, args)

    def warning(self, message: str, *args: Any) -> None:
        self._write("warning", message, args)

    def error(self, message: str, *args: Any) -> None:
        self._write("error", message, args)

    def _write(self, level: str, message: str, args: tuple[Any, ...]) -> None:
        self._emit({"kind": "log", "level": level, "message": str(message) % args if args else str(message)})


class ToolContext:
    """The circumstances of one call. A parameter with this type is filled in by Placet, never by the caller."""

    __slots__ = (
        "_deadline",
        "_emit",
        "attempt",
        "authorization",
        "call_id",
        "caller",
        "folder",
        "idempotency_key",
        "log",
        "secrets",
        "trace_id",
    )

    def __init__(
        self,
        *,
        secrets: Mapping[str, str] | None = None,
        authorization: Mapping[str, str] | None = None,
        agent: str = "",
        user_id: str = "",
        call_id: str = "",
        attempt: int = 1,
        idempotency_key: str = "",
        trace_id: str = "",
        timeout: float | None = None,
        folder: str | None = None,
        emit: Emit | None = None,
    ) -> None:
        self._emit: Emit = emit or (lambda frame: None)
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self.secrets = Secrets(secrets)
        self.authorization = Secrets(authorization, "authorization")
        self.caller = Caller(agent, user_id)
        self.log = Log(self._emit)
        self.call_id = call_id
        self.attempt = attempt
        self.idempotency_key = idempotency_key
        self.trace_id = trace_id
        # Of the toolkit's own, kept between calls; None unless the tool declares filesystem.read or .write.
        self.folder = None if folder is None else Path(folder)

    @property
    def user_id(self) -> str:
        """The user on whose behalf the agent asks, or an empty text."""
        return self.caller.user_id

    @property
    def seconds_left(self) -> float | None:
        """The time until the tool is ended by force; None when nobody set a limit."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tells whoever waits how far the tool has come."""
        for number in (done, total):
            if number is not None and not (isinstance(number, int | float) and math.isfinite(number)):
                raise ValueError("progress is told in finite numbers")
        self._emit({"kind": "progress", "done": done, "total": total, "message": str(message)})

    def __repr__(self) -> str:
        return f"ToolContext(caller={self.caller!r}, call_id={self.call_id!r}, attempt={self.attempt})"
