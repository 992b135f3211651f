"""The engine behind one small window: whatever goes wrong in it comes out as an Exception."""

from typing import Any

import cel


class Panic(Exception):
    """The engine stumbled over itself; it says so with what is no Exception, which would end a worker."""


def program(text: str) -> cel.Program:
    """A text compiled by the engine; ValueError if it refuses."""
    try:
        return cel.compile(text)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise ValueError("The engine does not accept this expression.") from None


def run(compiled: cel.Program, variables: dict[str, Any]) -> Any:
    """The value of a program for some variables; the messages of its exceptions may quote them."""
    try:
        return compiled.execute(variables)
    except Exception:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise Panic from None
