"""Secrets in HashiCorp Vault: the KV engine, version 2, over HTTP."""

from pathlib import Path
from urllib.parse import quote

from django.conf import settings

from execution import egress
from execution.credentials import Unseen
from execution.models import Secret
from execution.secretsources.base import Found, SourceError
from execution.secretvalues import fits_header
from registry import strictjson

MAX_ANSWER = 1_000_000
_OUTAGES = {429, 472, 473, 412}  # standby, too busy, not yet caught up


def find(secret: Secret, deadline: float) -> Found:
    """What lies at PLACET_VAULT_MOUNT and the secret's path now."""
    path = secret.path or secret.name
    place = f"{settings.PLACET_VAULT_MOUNT}/{path} in Vault"
    try:
        answer = egress.request(
            "GET",
            f"{_address()}/v1/{quote(settings.PLACET_VAULT_MOUNT)}/data/{quote(path)}",
            headers={"X-Vault-Token": _token(), "X-Vault-Request": "true", "Accept": "application/json"},
            body=b"",
            deadline=deadline,
            cancel=None,
            max_bytes=MAX_ANSWER,
        )
    except egress.EgressDenied as error:
        raise SourceError(f"Vault may not be reached: {error}; PLACET_EGRESS_ALLOW opens ranges") from error
    except egress.EgressError as error:
        raise SourceError(f"Vault could not be asked: {error}", can_retry=error.can_retry) from error
    if answer.status == 404:
        raise SourceError(f"there is nothing at {place}")
    if answer.status != 200:
        is_outage = answer.status >= 500 or answer.status in _OUTAGES
        raise SourceError(f"Vault answered {answer.status} for {place}", can_retry=is_outage)
    return _found(answer.body, place)


def _found(body: bytes, place: str) -> Found:
    try:
        answer = strictjson.loads(body)
        texts, version = answer["data"]["data"], answer["data"]["metadata"]["version"]
        values = Unseen({key: text for key, text in texts.items() if isinstance(text, str)})
    except (ValueError, LookupError, TypeError, AttributeError):
        raise SourceError(f"Vault did not answer as a KV engine of version 2 does for {place}") from None
    return Found(values=values, version=f"{place}:{version}")


def _address() -> str:
    if not settings.PLACET_VAULT_ADDR:
        raise SourceError("PLACET_VAULT_ADDR is not set")
    return str(settings.PLACET_VAULT_ADDR).rstrip("/")


def _token() -> str:
    """Given, or read anew from its file, which Vault's agent renews."""
    token = settings.PLACET_VAULT_TOKEN
    if not token and settings.PLACET_VAULT_TOKEN_FILE:
        try:
            token = Path(settings.PLACET_VAULT_TOKEN_FILE).read_text().strip()
        except (OSError, UnicodeDecodeError):
            raise SourceError("the file PLACET_VAULT_TOKEN_FILE cannot be read") from None
    if not token or not fits_header(token):
        raise SourceError("neither PLACET_VAULT_TOKEN nor PLACET_VAULT_TOKEN_FILE gives a usable token")
    return str(token)
