"""Token to Caller: a key or a JWT, for the doors and for DRF."""

import hashlib
import hmac
import logging
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any

import jwt
from django.conf import settings
from django.contrib.auth import get_user_model
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from policy import agents, issuedtokens, keysets, keyuse, scopes
from policy.caller import Caller
from policy.issuedtokens import BadToken
from policy.keyset import KeySet
from policy.models import Agent, Credential
from policy.models.agent import AGENT_NAME
from policy.sealedbox import Unsealable
from registry import revision
from registry.loopback import is_loopback

logger = logging.getLogger(__name__)

MAX_TOKEN = 8_192
MAX_JWT_LIFE = 15 * 60
CLOCK_LEEWAY = 10
CHALLENGE = 'Bearer realm="placet"'
# The same for a name that is no agent and for a wrong signature: who has no secret learns no names.
BAD_TOKEN = "The token is malformed, expired or not signed with the secret of the agent it names"
BAD_ISSUED = "The token is malformed, expired, not signed by an accepted issuer, or names no agent"

_Moment = tuple[int, KeySet | None]  # the revision, and the keys of issuers

_cache: dict[bytes, tuple[Caller, float]] = {}
_cached_at: _Moment | None = None
_lock = Lock()


class NotAuthenticated(Exception):
    """No credential, or one that does not hold; the message says what to send."""


class MalformedCredential(NotAuthenticated):
    """What was sent as a credential cannot be one, whoever sends it."""


def authenticate(headers: Mapping[str, str], *, resource: str = "") -> Caller:
    """The caller behind a request's headers; proven credentials are remembered until revision or keys move.

    `resource` is the address of the endpoint that is asked, if tokens may be made out to it alone.
    """
    token = _token(headers)
    if not token:
        return _anonymous()
    if len(token) > MAX_TOKEN:
        raise NotAuthenticated("The credential is too long")
    digest = hashlib.sha256(f"{resource}\n{token}".encode("utf-8", "surrogatepass")).digest()
    seen = revision.current(), keysets.current()
    caller = _remembered(digest, seen)
    if caller is None:
        caller, until = _by_jwt(token, resource) if token.count(".") == 2 else _by_key(token)
        _remember(digest, caller, until, seen)
    keyuse.note(caller)
    return caller


def still_holds(caller: Caller) -> bool:
    """Whether what the caller proved itself with is still good, for those who are answered for a long time."""
    kind, _, prefix = caller.credential.partition(":")
    if kind == "key":
        in_force = Credential.objects.in_force().filter(agent__user__is_active=True, agent_id=caller.agent_id)
        return in_force.filter(prefix=prefix).exists()
    if kind == "anonymous" and caller.name != settings.PLACET_ANONYMOUS_AGENT:
        return False
    return Agent.objects.filter(pk=caller.agent_id, is_active=True, user__is_active=True).exists()


class AgentAuthentication(BaseAuthentication):
    """For DRF: `request.auth` is the Caller, `request.user` the user that holds its permissions."""

    def authenticate(self, request: Request) -> tuple[Any, Caller] | None:
        try:
            if not _token(request.headers) and self._may_be_a_person(request):
                return None
            caller = authenticate(request.headers)
        except NotAuthenticated as error:
            raise AuthenticationFailed(str(error)) from error
        needed = scopes.READ if request.method in SAFE_METHODS else scopes.CALL
        if not caller.may(needed):
            raise PermissionDenied(f"The token's scope does not hold {needed}")
        return get_user_model().objects.get(pk=caller.user_id), caller

    @staticmethod
    def _may_be_a_person(request: Request) -> bool:
        """A session cookie beats the anonymous agent; without that agent, no token means no agent."""
        return not settings.PLACET_ANONYMOUS_AGENT or settings.SESSION_COOKIE_NAME in request._request.COOKIES

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


def _token(headers: Mapping[str, str]) -> str:
    given = headers.get("Authorization", "")
    if given:
        scheme, _, token = given.partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return token.strip()
        kind = MalformedCredential if scheme.lower() == "bearer" else NotAuthenticated
        raise kind("Send the key as 'Authorization: Bearer …' or as 'OXP-API-Key'")
    return headers.get("OXP-API-Key", "").strip()


def _anonymous() -> Caller:
    name = settings.PLACET_ANONYMOUS_AGENT
    agent = _agent_named(name) if name and is_loopback(settings.PLACET_HOST) else None
    if agent is None:
        raise NotAuthenticated("Send a key as 'Authorization: Bearer …' or as 'OXP-API-Key'")
    return Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="anonymous")


def _by_key(key: str) -> tuple[Caller, float]:
    form, _, rest = key.partition("_")
    prefix = rest.partition("_")[0]
    credential = None
    if form == agents.KEY_FORM and prefix.isascii() and prefix.isalnum() and len(prefix) <= 16:
        in_force = Credential.objects.in_force().filter(agent__user__is_active=True)
        credential = in_force.select_related("agent").filter(prefix=prefix).first()
    # The comparison runs also for an unknown prefix, so that the time taken says nothing.
    expected = credential.hash if credential is not None else "0" * 64
    if not hmac.compare_digest(agents.hash_of(key), expected) or credential is None:
        raise NotAuthenticated("The key is not known, or it was revoked or has expired")
    agent = credential.agent
    until = credential.expires_at.timestamp() if credential.expires_at else float("inf")
    return Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential=f"key:{prefix}"), until


def _by_jwt(token: str, resource: str) -> tuple[Caller, float]:
    """Its algorithm says who signs so: issuers never with a secret, agents with nothing else."""
    header = issuedtokens.header_of(token) if settings.PLACET_JWKS else None
    return _by_secret(token, resource) if header is None else _by_issuer(token, header, resource)


def _by_issuer(token: str, header: Mapping[str, Any], resource: str) -> tuple[Caller, float]:
    """RS256 or ES256 with a key of an authorization server; a claim of it names the agent."""
    try:
        issued = issuedtokens.verified(token, header, resource=resource)
    except BadToken as error:
        raise NotAuthenticated(str(error) or BAD_ISSUED) from error
    agent = _agent_named(issued.agent)
    if agent is None:
        raise NotAuthenticated(BAD_ISSUED)
    return _caller(agent, f"jwt:{issued.issuer}", issued.claims), issued.expires


def _by_secret(token: str, resource: str) -> tuple[Caller, float]:
    """HS256 with the agent's own secret; `exp` at most 15 minutes ahead; `aud`, if present, one of ours.

    A `scope` limits what the token is good for; without one, the agent's permissions and the rules alone do.
    """
    try:
        claimed = jwt.decode(token, options={"verify_signature": False}, algorithms=["HS256"])
        agent = _agent_named(claimed.get("sub"))
        secret = agents.jwt_secret_of(agent) if agent is not None else None
        if agent is None or secret is None:
            raise NotAuthenticated(BAD_TOKEN)
        claims = jwt.decode(
            token,
            secret,
            algorithms=["HS256"],
            leeway=CLOCK_LEEWAY,
            options={"require": ["exp", "sub"], "verify_aud": False},
        )
        expires = float(claims["exp"])
    except Unsealable as error:
        logger.error("the JWT secret of an agent cannot be opened: %s", error)
        raise NotAuthenticated("The token cannot be checked; use a key") from error
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise NotAuthenticated(BAD_TOKEN) from error
    if not expires <= time.time() + MAX_JWT_LIFE + CLOCK_LEEWAY:
        raise NotAuthenticated("The token's 'exp' is more than 15 minutes ahead")
    if "aud" in claims:
        audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        accepted = [*settings.PLACET_JWT_AUDIENCE, *([resource] if resource else [])]
        if not any(audience in accepted for audience in audiences):
            raise NotAuthenticated("The token's 'aud' is not this server")
    return _caller(agent, "jwt", claims), expires


def _caller(agent: Agent, credential: str, claims: Mapping[str, Any]) -> Caller:
    granted = _scopes(claims)
    return Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential=credential, scopes=granted)


def _scopes(claims: Mapping[str, Any]) -> frozenset[str] | None:
    if "scope" not in claims:
        return None
    if not isinstance(claims["scope"], str):
        raise NotAuthenticated("The token's 'scope' must be one text, with a space between scopes")
    return frozenset(claims["scope"].split())


def _agent_named(subject: object) -> Agent | None:
    """Only what can be a name reaches the database, and nobody but the person comes as a person's own agent."""
    if not isinstance(subject, str) or not AGENT_NAME.fullmatch(subject):
        return None
    return Agent.objects.filter(name=subject, is_active=True, user__is_active=True, person=None).first()


def _remembered(digest: bytes, now: _Moment) -> Caller | None:
    global _cache, _cached_at
    with _lock:
        if now != _cached_at or len(_cache) > 10_000:
            _cache, _cached_at = {}, now
        entry = _cache.get(digest)
    if entry is None or entry[1] <= time.time():
        return None
    return entry[0]


def _remember(digest: bytes, caller: Caller, until: float, seen: _Moment) -> None:
    """Kept under what held before the look-up: what has changed since is looked up again."""
    with _lock:
        if seen == _cached_at:
            _cache[digest] = (caller, until)
