"""OAuth 2 client credentials: one token per client, scopes and secret version, fetched once and kept until it ages."""

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from execution import egress
from execution.errors import CallError, ErrorCode
from execution.runtimes.cancel import Cancel
from execution.secretvalues import fits_header
from registry import strictjson

MOST = 512  # tokens kept in one process
MARGIN = 30.0  # seconds before its end at which a token is no longer used
DEFAULT_LIFE = 3600.0
LONGEST_LIFE = 86_400.0
MAX_ANSWER = 65_536
LOOK_EVERY = 0.02  # seconds at which one who waits for another's exchange looks whether its own call goes on
_REFUSED = {400, 401, 403}  # the client is not known or not allowed: asking again changes nothing
_WORD = re.compile(r"[a-z_]{1,40}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Who asks for a token, where and for what; equal ones share it."""

    token_url: str
    client_id: str
    scopes: tuple[str, ...]
    secret_version: str
    client_secret: str = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return f"Client({self.token_url})"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and the moment, on the monotonic clock, from which it is no longer used."""

    text: str = field(repr=False)
    good_until: float


class _Flight:
    """An exchange under way, and those who wait for it."""

    def __init__(self) -> None:
        self.landed = threading.Event()
        self.token: Token | None = None
        self.error: CallError | None = None


class TokenCache:
    """Bounded; the least used token goes first. However many ask at once, one exchange answers them all."""

    def __init__(self, most: int = MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens: OrderedDict[Client, Token] = OrderedDict()
        self._flights: dict[Client, _Flight] = {}

    def __len__(self) -> int:
        return len(self._tokens)

    def get(
        self,
        client: Client,
        exchange: Callable[[], Token],
        *,
        deadline: float,
        cancel: Cancel | None = None,
        rejected: str = "",
    ) -> str:
        """A token that is good now, and not the one that was `rejected`; CallError if none is to be had."""
        with self._lock:
            token = self._tokens.get(client)
            if token is not None and (token.text == rejected or token.good_until <= self._clock()):
                del self._tokens[client]
                token = None
            if token is not None:
                self._tokens.move_to_end(client)
                return token.text
            flight = self._flights.get(client)
            is_ours = flight is None
            if flight is None:
                flight = self._flights[client] = _Flight()
        if is_ours:
            self._fly(client, flight, exchange)
        else:
            _wait(flight.landed, deadline, cancel)
            if flight.error is not None and flight.error.code is ErrorCode.CANCELED:  # another call was, not this one
                return self.get(client, exchange, deadline=deadline, cancel=cancel, rejected=rejected)
        if flight.error is not None:
            # Of its own for everyone: an exception that several threads raise would collect their tracebacks.
            raise _again(flight.error)
        assert flight.token is not None
        return flight.token.text

    def _fly(self, client: Client, flight: _Flight, exchange: Callable[[], Token]) -> None:
        try:
            flight.token = exchange()
        except CallError as error:
            flight.error = error
        except BaseException:
            flight.error = unresolved("The token exchange failed", can_retry=True)
            raise
        finally:
            with self._lock:
                del self._flights[client]
                if flight.token is not None:
                    self._tokens[client] = flight.token
                    while len(self._tokens) > self._most:
                        self._tokens.popitem(last=False)
            flight.landed.set()


def _wait(landed: threading.Event, deadline: float, cancel: Cancel | None) -> None:
    while not landed.wait(LOOK_EVERY):
        if cancel is not None and cancel.is_set():
            raise CallError(ErrorCode.CANCELED, "The call was cancelled", is_sent=False)
        if time.monotonic() >= deadline:
            raise unresolved("The token endpoint did not answer in time", can_retry=True)


def exchange(client: Client, *, deadline: float, cancel: Cancel | None = None) -> Token:
    """One request to the token endpoint; an outage may be tried again, a refusal may not."""
    form = {"grant_type": "client_credentials", "client_id": client.client_id, "client_secret": client.client_secret}
    if client.scopes:
        form["scope"] = " ".join(client.scopes)
    try:
        answer = egress.request(
            "POST",
            client.token_url,
            headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
            body=urlencode(form).encode(),
            deadline=deadline,
            cancel=cancel,
            max_bytes=MAX_ANSWER,
        )
    except egress.EgressDenied as error:
        raise CallError(
            ErrorCode.RUNTIME_INVALID, f"The token endpoint may not be reached: {error}", is_sent=False
        ) from error
    except egress.EgressCancelled as error:
        raise CallError(ErrorCode.CANCELED, "The call was cancelled", is_sent=False) from error
    except egress.EgressError as error:
        raise unresolved(f"The token endpoint could not be asked: {error}", can_retry=error.can_retry) from error
    if answer.status != 200:
        why = _error_word(answer.body)
        raise unresolved(
            f"The token endpoint answered {answer.status}{f' ({why})' if why else ''}",
            can_retry=answer.status not in _REFUSED,
        )
    return _token(answer.body)


def lifetime(expires_in: object) -> float:
    """Seconds for which a token is used: 30 less than it lives, if it lives longer than that."""
    try:
        seconds = float(expires_in)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        seconds = 0.0
    if not seconds > 0:  # NaN too
        seconds = DEFAULT_LIFE
    return min(max(seconds - MARGIN if seconds > MARGIN else seconds, 1.0), LONGEST_LIFE)


def unresolved(why: str, *, can_retry: bool = False) -> CallError:
    """What a call is told when its credentials cannot be had; no backend was asked."""
    return CallError(
        ErrorCode.SECRET_UNRESOLVED,
        "The credentials of the tool could not be resolved",
        developer_message=why,
        can_retry=can_retry,
        is_sent=False,
    )


def _token(body: bytes) -> Token:
    try:
        answer = strictjson.loads(body)
    except ValueError:
        answer = None
    text = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(text, str) or not text.strip() or not fits_header(text):
        raise unresolved("The token endpoint answered 200 without a usable access_token", can_retry=True)
    return Token(text.strip(), time.monotonic() + lifetime(answer.get("expires_in")))


def _error_word(body: bytes) -> str:
    """The error's code as OAuth spells it, such as invalid_client; free text could quote the secret."""
    try:
        word = strictjson.loads(body).get("error")
    except (ValueError, AttributeError):
        return ""
    return word if isinstance(word, str) and _WORD.fullmatch(word) else ""


def _again(error: CallError) -> CallError:
    failure = error.failure
    return CallError(
        failure.code,
        failure.message,
        developer_message=failure.developer_message,
        can_retry=failure.can_retry,
        is_sent=False,
    )
