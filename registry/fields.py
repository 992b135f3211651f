"""Reading a document field by field: what is missing, unknown or of the wrong kind is told with its path."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

MAX_TOLD = 300  # characters of a path that are told


class ManifestError(Exception):
    """A document that cannot be taken: where (a path such as spec.tools[0].name), why, and on which line if known."""

    def __init__(self, path: str, reason: str, line: int | None = None) -> None:
        super().__init__(path, reason, line)
        self.path = path
        self.reason = reason
        self.line = line

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line else []
        return ": ".join([*place, *([self.told_path] if self.path else []), self.reason])

    @property
    def told_path(self) -> str:
        """The path for people; a document may have a name of any length."""
        return self.path if len(self.path) <= MAX_TOLD else f"{self.path[:MAX_TOLD]}…"


class Fields:
    """The fields of one mapping; a field that nobody knows is refused before any is read."""

    def __init__(self, value: Any, path: str, known: Collection[str]) -> None:
        if not isinstance(value, Mapping):
            raise ManifestError(path, "must be a mapping of fields")
        self.path = path
        self._value = value
        for name in value:
            if name not in known:
                close = get_close_matches(str(name)[:MAX_TOLD], known, 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise ManifestError(self.at(str(name)), f"is not a known field{hint}")

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Whether a field is there with more than nothing in it."""
        return self._value.get(name) is not None

    def raw(self, name: str, default: Any = None) -> Any:
        """The field as it is; nothing in it is the same as absent."""
        value = self._value.get(name)
        return default if value is None else value

    def need(self, name: str) -> Any:
        """The field as it is; it must be there."""
        if not self.has(name):
            raise ManifestError(self.at(name), "is required")
        return self._value[name]

    def text(self, name: str, default: str | None = None, *, most: int = 200) -> str:
        """A text field of bounded length; without a default it must be there and not be empty."""
        value = self.need(name) if default is None else self.raw(name, default)
        return text_at(self.at(name), value, most=most, is_empty_allowed=default is not None)

    def choice(self, name: str, allowed: Collection[str], default: str | None = None) -> str:
        """One of a few words."""
        value = self.need(name) if default is None else self.raw(name, default)
        if not isinstance(value, str) or value not in allowed:
            raise ManifestError(self.at(name), f"must be one of {', '.join(allowed)}")
        return value

    def flag(self, name: str) -> bool:
        """True or false; absent is false."""
        value = self.raw(name, False)
        if not isinstance(value, bool):
            raise ManifestError(self.at(name), "must be true or false")
        return value

    def whole(self, name: str, default: int | None, *, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self.need(name) if default is None else self.raw(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ManifestError(self.at(name), f"must be a whole number from {least} to {most}")
        return value

    def items(self, name: str, *, most: int = 1000) -> list[tuple[str, Any]]:
        """The items of a list, each with its path; absent is empty."""
        value = self.raw(name, [])
        if not isinstance(value, list | tuple) or len(value) > most:
            raise ManifestError(self.at(name), f"must be a list of at most {most} items")
        return [(f"{self.at(name)}[{index}]", item) for index, item in enumerate(value)]

    def texts(self, name: str, *, most: int = 100) -> list[str]:
        """A list of texts, none of them twice."""
        found = [text_at(path, item) for path, item in self.items(name, most=most)]
        if len(set(found)) != len(found):
            raise ManifestError(self.at(name), "names the same thing twice")
        return found


def text_at(path: str, value: Any, *, most: int = 200, is_empty_allowed: bool = False) -> str:
    """A text that every database and every peer can hold."""
    if not isinstance(value, str):
        raise ManifestError(path, "must be a text")
    if not value.strip() and not is_empty_allowed:
        raise ManifestError(path, "must not be empty")
    if len(value) > most:
        raise ManifestError(path, f"is longer than {most} characters")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ManifestError(path, "holds a character that cannot be stored")
    return value
