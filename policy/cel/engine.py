"""The engine behind one small window: whatever goes wrong in it comes out as an Exception."""

import sys
from types import ModuleType
from typing import Any

# The package would bring its command line along, and with it 10 MB of a terminal toolkit into each of our processes.
_stand_in = sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))
import cel  # noqa: E402

if sys.modules["cel.cli"] is _stand_in:
    del sys.modules["cel.cli"]

Program = cel.Program


class Panic(Exception):
    """The engine stumbled over itself; it says so with what is no Exception, which would end a worker."""


def program(text: str) -> Program:
    """A text compiled by the engine; ValueError if it refuses."""
    try:
        return cel.compile(text)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise ValueError("The engine does not accept this expression.") from None


def run(compiled: Program, variables: dict[str, Any]) -> Any:
    """The value of a program for some variables; the messages of its exceptions may quote them."""
    try:
        return compiled.execute(variables)
    except Exception:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise Panic from None
