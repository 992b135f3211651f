"""Text to tokens, each with its place; what CEL knows and a condition may not use is refused by name."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

MAX_TEXT = 2_000
RESERVED = frozenset(
    re.findall(
        r"\w+",
        "as break const continue else false for function if import in let loop namespace null package return true "
        "var void while",
    )
)

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n\f]+|//[^\n]*)
    | (?P<unsigned>(?:0x[0-9a-fA-F]+|[0-9]+)[uU](?![A-Za-z0-9_]))
    | (?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
    | (?P<bytes>[bB][rR]?["'])
    | (?P<raw>[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\r\n]*"|'[^'\r\n]*'))
    | (?P<text>\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<symbol>&&|\|\||==|!=|<=|>=|[<>+\-*/%!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|[abfnrtv\\?\"'`])")
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HINTS = {"=": "; to compare, write ==", "&": "; write &&", "|": "; write ||", "`": '; write input["…"]'}


class BadSyntax(ValueError):
    """The text is not an expression that a condition may be; `at` is the offset of the first wrong character."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at

    def sentence(self, text: str) -> str:
        """What is wrong, and the line and column where."""
        line = text.count("\n", 0, self.at) + 1
        column = self.at - (text.rfind("\n", 0, self.at) + 1) + 1
        return f"Line {line}, column {column}: {self.reason}."


@dataclass(frozen=True, slots=True)
class Token:
    """One word of an expression; texts and numbers carry their value."""

    kind: str  # int | double | text | name | symbol | end
    spelling: str
    value: int | float | str | None
    at: int
    end: int


def tokens(text: str) -> list[Token]:
    """The words of a text, with a last one that says where it ends; BadSyntax for what is no word."""
    if len(text) > MAX_TEXT:
        raise BadSyntax(f"the condition has {len(text)} characters; at most {MAX_TEXT} are allowed", MAX_TEXT)
    _refuse_hidden_characters(text)
    return [*_words(text), Token("end", "", None, len(text), len(text))]


def _words(text: str) -> Iterator[Token]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _unreadable(text, place)
        kind, spelling, at, place = str(match.lastgroup), match.group(), place, match.end()
        match kind:
            case "space":
                continue
            case "unsigned" | "bytes":
                raise BadSyntax(f"{kind} literals are not allowed in a condition", at)
            case "int":
                yield Token(kind, spelling, _integer(spelling, at), at, place)
            case "double":
                yield Token(kind, spelling, _decimal(spelling, at), at, place)
            case "raw":
                yield Token("text", spelling, _bare(spelling[1:]), at, place)
            case "text":
                yield Token("text", spelling, _unescaped(_bare(spelling), at), at, place)
            case _:
                yield Token(kind, spelling, None, at, place)


def _integer(spelling: str, at: int) -> int:
    value = int(spelling, 16 if spelling.startswith("0x") else 10)
    if value > 2**63:  # the one value beyond is the least number's, whose sign is read later
        raise BadSyntax("a whole number has at most 64 bits", at)
    return value


def _decimal(spelling: str, at: int) -> float:
    value = float(spelling)
    if value == float("inf"):
        raise BadSyntax("the number is too large", at)
    return value


def _bare(quoted: str) -> str:
    """A text without its quotes, one or three on each side."""
    width = 3 if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else 1
    return quoted[width:-width]


def _unescaped(text: str, at: int) -> str:
    if "\\" not in text:
        return text
    if "\\" in _ESCAPE.sub("", text):
        raise BadSyntax("the text holds a \\ that starts no escape; write \\\\ or put r before the quotes", at)
    try:
        return _ESCAPE.sub(lambda match: _meant(match.group()[1:]), text)
    except ValueError:
        raise BadSyntax("the text holds an escape that is no character", at) from None


def _meant(escape: str) -> str:
    if escape[0] in "xuU":
        code = int(escape[1:], 16)
    elif escape[0].isdigit():
        code = int(escape, 8)
    else:
        return _LETTERS.get(escape, escape)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError("half a character")
    return chr(code)


def _refuse_hidden_characters(text: str) -> None:
    """What a reader of the rule cannot see, or what turns the direction of what can be seen, must be spelled out."""
    if text.isascii() and text.isprintable():
        return
    for at, character in enumerate(text):
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") and character not in "\n\r\t\f":
            raise BadSyntax(
                f"the character U+{ord(character):04X} cannot be seen; in a text, write it as an escape", at
            )


def _unreadable(text: str, at: int) -> BadSyntax:
    if text[at] in "\"'":
        return BadSyntax("the text that starts here has no end, or holds a line break or a bad escape", at)
    return BadSyntax(f"{text[at]!r} cannot stand here{_HINTS.get(text[at], '')}", at)
