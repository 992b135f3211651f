"""What a hook is told of: the attempt that begins, and how it ended. Names, codes and times, never a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoking:
    """A tool is about to be called."""

    tool_id: str  # "Calculator.Add@1.1.0"
    agent: str
    call: str  # Placet's own id of the call: /calls/<call>/ shows it
    call_id: str  # the caller's id of it, without what the caller may not tell
    door: str
    attempt: int  # 1 is the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed(Invoking):
    """The tool answered, and the answer is on record."""

    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Invoking):
    """The attempt went wrong, which is on record; the call may still be tried again, under the next number."""

    duration_ms: float
    error: str  # the wire name of a row in execution/errors.py


Event = Invoking | Completed | Failed
