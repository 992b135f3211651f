"""Every secret in force as one set of needles: a tool may print a secret that it was never given."""

import contextlib
import logging
import time
from collections.abc import Iterator

from django.db import DatabaseError

from audit.needles import Needles, problem
from execution import secretsources
from execution.credentials import Unseen
from execution.models import Secret, SecretVersion
from execution.secretsources import SourceError
from execution.secretsources.stored import opened
from execution.secretvalues import WHOLE
from policy.sealedbox import Unsealable
from registry import revision

logger = logging.getLogger(__name__)

_HERE = (Secret.Source.ENV, Secret.Source.FILE)  # what lies in Vault is fetched for the tools that need it, not for all
_known: tuple[int, Needles | None] = (-1, None)


def needles() -> Needles | None:
    """Kept until the registry's revision moves, which it does with every secret; None where there are no secrets."""
    global _known
    with contextlib.suppress(DatabaseError):  # a result that waits to be written is better masked by what was known
        now = revision.current()
        if _known[0] != now:
            found = Needles(_texts())
            _known = (now, found if found else None)
    return _known[1]


def _texts() -> Iterator[tuple[str, str]]:
    for version in SecretVersion.objects.filter(discarded_at=None).select_related("secret"):
        try:
            yield from _named(version.secret.name, opened(version))
        except Unsealable:  # nobody can be given it any more either
            logger.error("%s of the secret %s cannot be opened, and so not be masked", version, version.secret)
    for secret in Secret.objects.filter(source__in=_HERE):
        with contextlib.suppress(SourceError):
            yield from _named(secret.name, secretsources.find(secret, time.monotonic() + 1.0).values)


def _named(name: str, texts: Unseen) -> Iterator[tuple[str, str]]:
    for key, text in texts.items():
        if not problem(text):
            yield name if key == WHOLE else f"{name}:{key}", text
