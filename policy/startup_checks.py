"""What must hold before Placet serves anyone."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from policy import keyset, keysets
from registry.loopback import is_loopback


@register(Tags.security)
def anonymous_agent_needs_a_loopback_listener(**_: Any) -> list[CheckMessage]:
    if settings.PLACET_ANONYMOUS_AGENT and not is_loopback(settings.PLACET_HOST):
        return [
            Error(
                "PLACET_ANONYMOUS_AGENT lets anyone call, so HOST must be a loopback address, "
                f"not {settings.PLACET_HOST}.",
                hint="Listen on 127.0.0.1, or unset PLACET_ANONYMOUS_AGENT and use keys.",
                id="policy.E001",
            )
        ]
    return []


@register(Tags.security)
def tokens_of_issuers_can_be_checked(**_: Any) -> list[CheckMessage]:
    place = settings.PLACET_JWKS
    if not place:
        return _unreadable_tokens()
    wrong: list[CheckMessage] = []
    if not settings.PLACET_JWT_ISSUERS:
        hint = "Set PLACET_JWT_ISSUERS to the 'iss' of the tokens, or name the server in PLACET_AUTHORIZATION_SERVERS."
        wrong.append(Error("PLACET_JWKS brings keys, but no issuer is accepted.", hint=hint, id="policy.E002"))
    if not keysets.is_address(place):
        try:
            keyset.read(Path(place).read_bytes())
        except (OSError, keyset.BadKeySet) as error:
            why = error.strerror if isinstance(error, OSError) else error
            hint = "Give the path of a JSON Web Key Set, or the https:// address of one."
            wrong.append(Error(f"The file of PLACET_JWKS cannot be used: {why}.", hint=hint, id="policy.E003"))
    return wrong


def _unreadable_tokens() -> list[CheckMessage]:
    """Issuers without keys: clients are sent for tokens that are then refused."""
    if not settings.PLACET_JWT_ISSUERS:
        return []
    hint = "Set PLACET_JWKS to the address of the servers' key set, or to a file that holds it."
    return [Warning("Issuers are named, but nothing that checks their tokens.", hint=hint, id="policy.W001")]
