"""Create secrets, add and discard versions, note their use: sole writer of secrets."""

import contextlib
import time
from collections.abc import Iterable, Mapping

from django.core.exceptions import ValidationError
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Now
from django.utils import timezone

from audit import trail
from execution.models import Secret, SecretUse, SecretVersion
from execution.secretsources.environment import OURS, variable
from execution.secretsources.stored import closed, opened
from execution.secretvalues import HIDDEN, ValueProblem, check, merged
from policy.sealedbox import Unsealable
from registry.clock import Later
from registry.models import Toolkit

MINUTE = 60.0
_MOST_NOTED = 10_000
_noted: dict[tuple[int, int], float] = {}  # (secret, tool) -> when this process last wrote its use down


class SecretError(Exception):
    """A secret that cannot be made or changed as asked; the message says why and never quotes a value."""


@transaction.atomic
def create(
    name: str,
    values: Mapping[str, str] | None,
    *,
    actor: str,
    source: str = Secret.Source.STORED,
    path: str = "",
    description: str = "",
    toolkits: Iterable[str] = (),
) -> Secret:
    """A secret with its first version, or the place outside where its value lies."""
    secret = Secret(name=name, source=source, path=path, description=description)
    _check_place(secret, values)
    try:
        secret.clean_fields()
        with transaction.atomic():
            secret.save()
    except ValidationError as error:
        raise SecretError("; ".join(error.messages)) from error
    except IntegrityError:
        raise SecretError(f"There is already a secret named {name!r}.") from None
    secret.toolkits.set(_toolkits(toolkits))
    detail = {"source": str(source), "toolkits": _names(secret)}
    trail.record("secret", name, "secret.created", actor=actor, detail=detail)
    if values is not None:
        add_version(secret, values, actor=actor)
    return secret


@transaction.atomic
def add_version(secret: Secret, values: Mapping[str, str], *, actor: str) -> SecretVersion | None:
    """A new value, used from the next attempt on; HIDDEN keeps a text as it is, and None says that nothing changed."""
    _held(secret)
    if secret.source != Secret.Source.STORED:
        raise SecretError(f"The value of {secret.name} does not lie here: its source is {secret.source}.")
    versions = SecretVersion.objects.filter(secret=secret)
    try:
        if HIDDEN in values.values():
            newest = versions.filter(discarded_at=None).order_by("-number").first()
            if newest is not None and set(values.values()) == {HIDDEN} and sorted(values) == newest.keys:
                return None
            values = merged(values, opened(newest) if newest is not None else {})
        check(values)
    except ValueProblem as error:
        raise SecretError(str(error)) from None
    except Unsealable as error:
        raise SecretError("The value to be kept can no longer be read; give it anew.") from error
    number = (versions.aggregate(last=Max("number"))["last"] or 0) + 1
    made = SecretVersion.objects.create(
        secret=secret,
        number=number,
        sealed=closed(values, secret.pk, number),
        keys=sorted(values),
        created_by=actor,
    )
    detail = {"version": number, "keys": made.keys}
    trail.record("secret", secret.name, "secret.version_added", actor=actor, detail=detail)
    return made


@transaction.atomic
def change(
    secret: Secret,
    *,
    actor: str,
    description: str | None = None,
    path: str | None = None,
    toolkits: Iterable[str] | None = None,
) -> bool:
    """What a secret is for, where it lies outside and which toolkits may use it; True if that changed anything."""
    held = _held(secret)
    before = (held.description, held.path, _names(held))
    held.description = held.description if description is None else description
    held.path = held.path if path is None else path
    try:
        held.clean_fields()
    except ValidationError as error:
        raise SecretError("; ".join(error.messages)) from error
    if held.path and held.source != Secret.Source.VAULT:
        raise SecretError("Only a secret in Vault has a path.")
    if toolkits is not None:
        held.toolkits.set(_toolkits(toolkits))
    if before == (held.description, held.path, _names(held)):
        return False
    held.save(update_fields=["description", "path"])
    detail = {"path": held.path, "toolkits": _names(held)}
    trail.record("secret", held.name, "secret.changed", actor=actor, detail=detail)
    return True


@transaction.atomic
def discard(secret: Secret, number: int, *, actor: str) -> bool:
    """Destroy the value of one version; True if it still had one. Without its newest, a secret has the one before."""
    kept = SecretVersion.objects.filter(secret=_held(secret), number=number, discarded_at=None)
    if not kept.update(sealed=None, discarded_at=Now()):
        return False
    trail.record("secret", secret.name, "secret.discarded", actor=actor, detail={"version": number})
    return True


@transaction.atomic
def delete(secret: Secret, *, actor: str) -> None:
    """The secret with all its versions; tools that name it fail from now on."""
    held = _held(secret)
    trail.record("secret", held.name, "secret.deleted", actor=actor, detail={"source": held.source})
    held.delete()


def used(secret_id: int, tool_id: int) -> None:
    """Note that a tool got the secret; written at most once a minute, and no call fails because it cannot be."""
    now = time.monotonic()
    if now - _noted.get((secret_id, tool_id), -MINUTE) < MINUTE:
        return
    if len(_noted) >= _MOST_NOTED:
        _noted.clear()
    _noted[secret_id, tool_id] = now
    with contextlib.suppress(DatabaseError), transaction.atomic():
        use = SecretUse.objects.filter(secret=secret_id, tool=tool_id)
        if not use.filter(used_at__lt=Later(-MINUTE)).update(used_at=Now()) and not use.exists():
            fresh = SecretUse(secret_id=secret_id, tool_id=tool_id, used_at=timezone.now())
            SecretUse.objects.bulk_create([fresh], ignore_conflicts=True)


def _check_place(secret: Secret, values: Mapping[str, str] | None) -> None:
    if "versions" in secret.name.split("/")[1:]:
        raise SecretError("'versions' cannot be a part of a secret's name: it is an address of the API.")
    if secret.source == Secret.Source.STORED and values is None:
        raise SecretError("A secret that is stored here needs a value.")
    if secret.source != Secret.Source.STORED and values is not None:
        raise SecretError("A secret that lies elsewhere has no value here.")
    if secret.source == Secret.Source.ENV and variable(secret.name) in OURS:
        raise SecretError(f"{variable(secret.name)} is a setting of Placet itself; no tool may have it.")
    if secret.path and secret.source != Secret.Source.VAULT:
        raise SecretError("Only a secret in Vault has a path.")


def _held(secret: Secret) -> Secret:
    """The row, locked: changes of one secret come one after the other."""
    held = Secret.objects.select_for_update().filter(pk=secret.pk).first()
    if held is None:
        raise SecretError(f"{secret.name} was deleted.")
    return held


def _toolkits(names: Iterable[str]) -> list[Toolkit]:
    found = []
    for name in names:
        toolkit = Toolkit.objects.filter(name__iexact=name).first()
        if toolkit is None:
            raise SecretError(f"There is no toolkit named {name!r}.")
        found.append(toolkit)
    return found


def _names(secret: Secret) -> list[str]:
    return sorted(secret.toolkits.values_list("name", flat=True))
