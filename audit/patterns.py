"""Patterns: texts that are secrets by their very shape, wherever they stand."""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from audit.keys import is_sensitive
from audit.marks import is_mark, mark

SHORTEST = 8  # no pattern matches anything shorter

Match = re.Match[str]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One shape: cheap lower-case hints that must be present, the expression, and a last look at what it found."""

    name: str
    hints: tuple[str, ...]
    expression: re.Pattern[str]
    is_secret: Callable[[Match], bool] = lambda found: True


def redacted(text: str) -> str:
    """The text with everything that has the shape of a secret masked; the text itself if there is nothing."""
    lowered = text.lower()
    for pattern in _PATTERNS:
        for hint in pattern.hints:
            if hint in lowered:
                text = _apply(pattern, text)
                break
    if len(text) >= 13 and _DIGITS.search(text):
        text = _CARD.sub(_mask_card, text)
    return text


def is_card(number: int) -> bool:
    """Whether a whole number is a payment card's."""
    return number > 10**12 and _CARD.fullmatch(str(number)) is not None and _passes_luhn(str(number))


def _apply(pattern: Pattern, text: str) -> str:
    def mask(found: Match) -> str:
        # A group named "secret" leaves the words around it readable.
        start, end = found.span("secret") if "secret" in pattern.expression.groupindex else found.span()
        secret = text[start:end]
        if not secret or is_mark(secret) or "[REDACTED:" in secret or not pattern.is_secret(found):
            return found.group()
        return text[found.start() : start] + mark(pattern.name, secret) + text[end : found.end()]

    return pattern.expression.sub(mask, text)


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


def _is_under_a_sensitive_key(found: Match) -> bool:
    return is_sensitive(unquote(found["key"]))


def _names_a_password(found: Match) -> bool:
    """`git@` in an SSH address is a convention; any other user part may be a token."""
    return found["secret"] != "git"


def _passes_luhn(text: str) -> bool:
    digits = [int(letter) for letter in reversed(text) if letter.isdigit()]
    doubled = (digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _mask_card(found: Match) -> str:
    return mark("card", re.sub(r"\D", "", found.group())) if _passes_luhn(found.group()) else found.group()


_DIGITS = re.compile(r"[2-6][0-9]{3}[ -]?[0-9]{4}")  # what every card number has, at a tenth of the price

# Only numbers an issuer could have given out: one in ten of all other long numbers would pass the check digit by chance.
_CARD = re.compile(
    r"(?<![\w.-])(?:"
    r"4\d{12}(?:\d{3}){0,2}"
    r"|(?:5[1-5]|2[2-7]|35|6[0-9])\d{14}|6\d{16,18}|3[47]\d{13}|3[068]\d{12}"
    r"|(?:4\d|5[1-5]|2[2-7]|35|6\d)\d\d(?:[ -]\d{4}){3}|3[47]\d\d[ -]\d{6}[ -]\d{5}|3[068]\d\d[ -]\d{6}[ -]\d{4}"
    r")(?![\w-]|\.\d)"
)


def _shape(name: str, hint: str, expression: str) -> Pattern:
    return Pattern(name, tuple(hint.split()), re.compile(rf"(?<![A-Za-z0-9]){expression}"))


_PATTERNS = (
    Pattern(
        "private-key",
        ("private key-----",),
        re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)", re.S),
    ),
    _shape("jwt", "eyj", r"eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*"),
    _shape("github-token", "ghp_ gho_ ghs_ ghu_ ghr_", r"gh[posur]_[A-Za-z0-9]{20,}"),
    _shape("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    _shape("aws-key", "akia asia", r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _shape("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _shape("stripe-key", "sk_live_ rk_live_ sk_test_", r"(?:sk_live|rk_live|sk_test)_[A-Za-z0-9]{10,}"),
    Pattern(
        "sk-key",
        ("sk-",),
        # The digit keeps hyphenated prose such as "sk-some-long-kebab-case-name" out.
        re.compile(r"(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{16,}"),
    ),
    _shape("google-key", "aiza", r"AIza[0-9A-Za-z_-]{30,}"),
    _shape("gitlab-token", "glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
    _shape("npm-token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    _shape("pypi-token", "pypi-", r"pypi-(?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{30,}"),
    Pattern(
        "header",
        ("authorization", "cookie", "api-key", "apikey", "auth-token"),
        re.compile(
            r"(?i)\b(?:(?:proxy-)?authorization|(?:set-)?cookie|x-api-key|api-key|apikey|x-auth-token)"
            r"[\"']?[ \t]*[:=][ \t]*[\"']?(?:(?:bearer|basic|token|digest|apikey)[ \t]+)?(?P<secret>[^\s\"',;<>]{6,})"
        ),
        _is_no_word,
    ),
    Pattern("bearer", ("bearer ",), re.compile(r"(?i)\bbearer[ \t]+(?P<secret>[A-Za-z0-9._~+/-]{8,}=*)"), _is_no_word),
    Pattern("basic", ("basic ",), re.compile(r"(?i)\bbasic[ \t]+(?P<secret>[A-Za-z0-9+/_-]{6,}={0,2})"), _has_credentials),
    Pattern("url", ("://",), re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://(?P<secret>[^\s/?#@\"'<>]+)(?=@)"), _names_a_password),
    Pattern(
        "url",
        ("=",),
        re.compile(r"[?&#;](?P<key>[A-Za-z0-9_.%\[\]-]{2,80})=(?P<secret>[^\s&#;\"'<>]+)"),
        _is_under_a_sensitive_key,
    ),
    Pattern(
        "assignment",
        ("password", "passwd", "pwd", "secret", "key", "token"),
        re.compile(
            r"(?i)(?<![A-Za-z0-9])(?:[A-Za-z0-9]+[_-])?(?:password|passwd|pwd|secret|api[_-]?key|private[_-]?key|token)"
            r"(?:=[\"']?|\\?[\"'][ \t]*:[ \t]*\\?[\"'])(?P<secret>[^\s\"'&,;<>\\)\]}]{4,})"
        ),
    ),
)
