"""Tools that misbehave in every way a tool can, for tests."""

import os
import re
import time
from pathlib import Path
from typing import Annotated, Any

from placet import Image, RetryableToolError, Text, ToolContext, ToolError, Toolkit, tool

FILES = ["filesystem.read", "filesystem.write"]
toolkit = Toolkit(name="Lab", version="1.0.0", title="Lab", description="Tools that misbehave in every way.")


def _witness(ledger: str, line: str = "ran") -> int:
    """One line per real execution, on disk before the tool goes on; the number of lines so far."""
    handle = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.fsync(handle)
    os.close(handle)
    return len(Path(ledger).read_text().splitlines())


@tool(idempotency="read", dispatch="inline")
def echo(value: Annotated[Any, "What to return."] = None) -> Any:
    """Returns its input."""
    return value


@tool(capabilities=FILES, timeout="5s")
def ring(ledger: Annotated[str, "Where to write."]) -> int:
    """Writes a line and counts them; has its effect each time it runs."""
    return _witness(ledger)


@tool(capabilities=FILES, timeout="5s", idempotency="read", dispatch="inline")
def ring_inline(ledger: Annotated[str, "Where to write."]) -> int:
    """Writes a line and counts them, in the web process."""
    return _witness(ledger)


@tool(capabilities=FILES, timeout="20s")
def slow(ledger: Annotated[str, "Where to write."], seconds: Annotated[float, "How long."]) -> str:
    """Writes a line, then takes its time; not idempotent."""
    _witness(ledger, "began")
    time.sleep(seconds)
    return "done"


@tool(capabilities=FILES, timeout="20s", idempotency="idempotent")
def slow_but_safe(ledger: Annotated[str, "Where to write."], seconds: Annotated[float, "How long."]) -> str:
    """Writes a line, then takes its time; may be run again."""
    _witness(ledger, "began")
    time.sleep(seconds)
    return "done"


@tool(timeout="300ms", idempotency="read")
def stuck(how: Annotated[str, "sleep or regex."]) -> str:
    """Does not come back by itself."""
    if how == "regex":
        re.match(r"^(a+)+$", "a" * 40 + "!")
    time.sleep(60)
    return "done"


@tool(timeout="300ms", idempotency="read", dispatch="inline")
def stuck_inline() -> None:
    """Does not come back by itself, in the web process."""
    time.sleep(60)


@tool(timeout="5s")
def crash() -> None:
    """Takes its process down."""
    os._exit(13)


@tool(
    capabilities=FILES,
    timeout="5s",
    idempotency="idempotent",
    retry={"maxAttempts": 3, "backoff": "10ms", "maxBackoff": "50ms", "jitter": "none"},
)
def flaky(ledger: Annotated[str, "Where to write."], fails: Annotated[int, "How often it fails first."]) -> int:
    """Fails a few times before it works."""
    times = _witness(ledger)
    if times <= fails:
        raise RetryableToolError("Not yet", developer_message=f"try {times}")
    return times


@tool(
    capabilities=FILES,
    timeout="5s",
    retry={"maxAttempts": 3, "backoff": "10ms", "maxBackoff": "50ms", "jitter": "none"},
)
def flaky_once(ledger: Annotated[str, "Where to write."]) -> int:
    """Always fails, says it may be retried, and is not idempotent."""
    _witness(ledger)
    raise RetryableToolError("Not yet")


@tool(timeout="5s")
def lie() -> int:
    """Promises a number and returns something else."""
    return "not a number"  # type: ignore[return-value]


@tool(timeout="5s")
def fail(message: Annotated[str, "What to say."]) -> None:
    """Fails with a message."""
    raise ToolError(message, developer_message=f"developer: {message}")


@tool(timeout="5s")
def explode(secret: Annotated[str, "In the exception's text."]) -> None:
    """Raises what no one expected."""
    raise RuntimeError(f"boom {secret}")


@tool(timeout="5s", requires_secrets=["API_KEY"], requires_authorization=[{"id": "google"}], requires_user_id=True)
def needy(context: ToolContext) -> dict[str, Any]:
    """Shows that what the caller brought arrived."""
    return {
        "secret_length": len(context.secrets["API_KEY"]),
        "leak": f"the key is {context.secrets['API_KEY']}",
        "user": context.user_id,
    }


@tool(timeout="5s", dispatch="inline", idempotency="read")
def token() -> dict[str, str]:
    """Returns something that people may not see but its caller must."""
    return {"next_page_token": "page-2-of-the-list"}


@tool(timeout="5s", dispatch="inline", idempotency="read")
def picture() -> list[Text | Image]:
    """Returns content."""
    return [Text("look"), Image(data=b"\x89PNG", mime_type="image/png")]


@tool(timeout="5s")
def big(size: Annotated[int, "Characters."]) -> str:
    """Returns a long text."""
    return "x" * size


@tool(risk="high", timeout="5s")
def launch() -> None:
    """Needs a person."""


@tool(risk="high", timeout="5s", capabilities=["external.side_effect", *FILES])
def fire(
    ledger: Annotated[str, "Where to write."],
    amount: Annotated[float, "How much."] = 1.0,
    code: Annotated[str, "Known to few.", {"writeOnly": True}] = "",
) -> int:
    """Needs a person, and leaves a line."""
    return _witness(ledger)


@tool(capabilities=FILES, risk="critical", timeout="5s")
def detonate(ledger: Annotated[str, "Where to write."]) -> int:
    """Needs two people, and leaves a line."""
    return _witness(ledger)


@tool(capabilities=FILES, risk="high", timeout="5s", idempotency="keyed", retry={"maxAttempts": 3})
def fire_again(ledger: Annotated[str, "Where to write."], fails: Annotated[int, "How often it fails first."]) -> int:
    """Needs a person, and some attempts."""
    if _witness(ledger) <= fails:
        raise RetryableToolError("Not yet")
    return fails


@tool(timeout="5s", idempotency="read")
def environment() -> list[str]:
    """The names in the tool's environment."""
    return sorted(os.environ)
