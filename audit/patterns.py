"""Patterns: texts that are secrets by their very shape, wherever they stand."""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from audit.keys import is_sensitive
from audit.marks import mark

SHORTEST = 8  # no pattern matches anything shorter
_LONGEST_INTRODUCTION = 64  # characters without a space, such as `authorization="bearer`

Match = re.Match[str]

# ASCII only, so that the lowered text keeps its length.
LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


@dataclass(frozen=True, slots=True)
class Pattern:
    """One shape: what it can begin with (lower case), the expression from there on, and a last look at the match."""

    name: str
    begins: tuple[str, ...]
    expression: re.Pattern[str]
    is_secret: Callable[[Match], bool] = lambda found: True
    is_word: bool = True  # what it begins with is the beginning of a word


def redacted(text: str) -> str:
    """The text with everything that has the shape of a secret masked; the text itself if there is nothing."""
    # Looking for fixed words first costs next to nothing; the expressions run only where one of them stands.
    lowered = text.lower() if text.isascii() else text.translate(LOWER)
    spans: list[tuple[int, int, str]] = []
    for pattern in _PATTERNS:
        for begin in pattern.begins:
            at = lowered.find(begin)
            while at >= 0:
                at = lowered.find(begin, max(at + len(begin), _look(pattern, text, at, spans)))
    if "=" in text:
        for found in _QUERY.finditer(text):
            if is_sensitive(unquote(found["key"])):
                spans.append((*found.span("secret"), "url"))
    if len(text) >= 13 and _DIGITS.search(text):
        spans += [(*found.span(), "card") for found in _CARD.finditer(text) if _passes_luhn(found.group())]
    return _with_marks(text, spans) if spans else text


def _look(pattern: Pattern, text: str, at: int, spans: list[tuple[int, int, str]]) -> int:
    """Where to go on after what was found at this place, or 0 if nothing was."""
    if pattern.is_word and at and text[at - 1].isalnum():
        return 0
    found = pattern.expression.match(text, at)
    if found is None:
        return 0
    if not pattern.is_secret(found):
        # A secret that begins inside this one ends where it ends and would be refused too, so a long text is not
        # judged again from each of its words. Only what introduces a secret may reach over that end.
        return max(0, found.end() - _LONGEST_INTRODUCTION)
    # A group named "secret" leaves the words around it readable.
    spans.append((*found.span("secret" if "secret" in pattern.expression.groupindex else 0), pattern.name))
    return found.end()


def _with_marks(text: str, spans: list[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end <= done:
            continue
        secret = text[max(start, done) : end]
        pieces += [text[done:start], secret if "[REDACTED:" in secret else mark(name, secret)]
        done = end
    return "".join([*pieces, text[done:]])


def is_card(number: int) -> bool:
    """Whether a whole number is a payment card's."""
    return number > 10**12 and _CARD.fullmatch(str(number)) is not None and _passes_luhn(str(number))


def _has_credentials(found: Match) -> bool:
    """Basic credentials decode to name:password; ordinary words after "basic" do not."""
    secret = found["secret"]
    try:
        return b":" in base64.b64decode(secret + "=" * (-len(secret) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_no_word(found: Match) -> bool:
    """A token has digits or mixed case; "bearer securities" has neither."""
    secret = found["secret"]
    return any(letter.isdigit() for letter in secret) or (secret != secret.lower() and secret[1:] != secret[1:].lower())


def _names_a_password(found: Match) -> bool:
    """`git@` in an SSH address is a convention; any other user part may be a token."""
    return found["secret"] != "git"


def _passes_luhn(text: str) -> bool:
    digits = [int(letter) for letter in reversed(text) if letter.isdigit()]
    doubled = (digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


_DIGITS = re.compile(r"[2-6][0-9]{3}[ -]?[0-9]{4}")  # what every card number has, at a tenth of the price

# Only numbers an issuer could have given out: one in ten of all other long numbers has a fitting check digit.
_CARD = re.compile(
    r"(?<![\w.-])(?:"
    r"4\d{12}(?:\d{3}){0,2}"
    r"|(?:5[1-5]|2[2-7]|35|6[0-9])\d{14}|6\d{16,18}|3[47]\d{13}|3[068]\d{12}"
    r"|(?:4\d|5[1-5]|2[2-7]|35|6\d)\d\d(?:[ -]\d{4}){3}|3[47]\d\d[ -]\d{6}[ -]\d{5}|3[068]\d\d[ -]\d{6}[ -]\d{4}"
    r")(?![\w-]|\.\d)"
)


_QUERY = re.compile(r"[?&#;](?P<key>[A-Za-z0-9_.%\[\]-]{2,80})=(?P<secret>[^\s&#;\"'<>]+)")


def _shape(name: str, begins: str, expression: str) -> Pattern:
    return Pattern(name, tuple(begins.split()), re.compile(expression))


# Every repetition that may still fail is bounded: a hostile text must not make the search quadratic.
_PATTERNS = (
    Pattern(
        "private-key",
        ("-----begin ",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)", re.S
        ),
    ),
    _shape("jwt", "eyj", r"eyJ[A-Za-z0-9_-]{6,1000}+\.eyJ[A-Za-z0-9_-]{6,}\.?[A-Za-z0-9_-]*"),
    _shape("github-token", "ghp_ gho_ ghs_ ghu_ ghr_", r"gh[posur]_[A-Za-z0-9]{20,}"),
    _shape("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    _shape("aws-key", "akia asia", r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _shape("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _shape("stripe-key", "sk_live_ rk_live_ sk_test_", r"(?:sk_live|rk_live|sk_test)_[A-Za-z0-9]{10,}"),
    # The digit keeps hyphenated prose such as "sk-some-long-kebab-case-name" out.
    _shape("sk-key", "sk-", r"sk-(?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{16,}"),
    _shape("google-key", "aiza", r"AIza[0-9A-Za-z_-]{30,}"),
    _shape("gitlab-token", "glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
    _shape("npm-token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    _shape("pypi-token", "pypi-", r"pypi-(?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{30,}"),
    Pattern(
        "header",
        ("authorization", "cookie", "api-key", "apikey", "auth-token"),
        re.compile(
            r"[A-Za-z-]{6,20}[\"']?[ \t]{0,9}[:=][ \t]{0,9}[\"']?"
            r"(?:(?i:bearer|basic|token|digest|apikey)[ \t]+)?(?P<secret>[^\s\"',;<>]{6,})"
        ),
        _is_no_word,
        is_word=False,
    ),
    Pattern("bearer", ("bearer ",), re.compile(r"(?i)bearer[ \t]+(?P<secret>[A-Za-z0-9._~+/-]{8,}=*)"), _is_no_word),
    Pattern(
        "basic", ("basic ",), re.compile(r"(?i)basic[ \t]+(?P<secret>[A-Za-z0-9+/_-]{6,}={0,2})"), _has_credentials
    ),
    Pattern("url", ("://",), re.compile(r"://(?P<secret>[^\s/?#@\"'<>]+)@"), _names_a_password, is_word=False),
    Pattern(
        "assignment",
        ("password", "passwd", "pwd", "secret", "api_key", "api-key", "apikey", "private_key", "access_key", "token"),
        re.compile(
            r"[A-Za-z_-]{3,11}(?:=[\"']?|\\?[\"'][ \t]{0,9}:[ \t]{0,9}\\?[\"'])(?P<secret>[^\s\"'&,;<>\\)\]}]{4,})"
        ),
        is_word=False,
    ),
)
