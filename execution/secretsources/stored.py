"""Secrets in Placet's own database: the newest version that is not discarded, unsealed."""

from collections.abc import Mapping

import orjson

from execution.credentials import Unseen
from execution.models import Secret, SecretVersion
from execution.secretsources.base import Found, SourceError
from policy.sealedbox import Unsealable, seal, unseal


def find(secret: Secret, deadline: float) -> Found:
    newest = SecretVersion.objects.filter(secret=secret, discarded_at=None).order_by("-number").first()
    if newest is None:
        raise SourceError("the secret has no value")
    try:
        return Found(values=opened(newest), version=f"{newest.pk}")
    except Unsealable as error:
        raise SourceError(str(error)) from error


def box(secret_id: int, number: int) -> str:
    """The name of the row that a value is sealed for."""
    return f"execution.secret:{secret_id}:{number}"


def closed(values: Mapping[str, str], secret_id: int, number: int) -> bytes:
    return seal(orjson.dumps(dict(values)), bound_to=box(secret_id, number))


def opened(version: SecretVersion) -> Unseen:
    assert version.sealed is not None  # the row's constraint: only a discarded version holds nothing
    return Unseen(orjson.loads(unseal(version.sealed, bound_to=box(version.secret_id, version.number))))
