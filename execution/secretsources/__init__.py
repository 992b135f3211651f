"""SOURCES: the table from where a secret lies to the function that finds it there."""

from collections.abc import Callable

from execution.models import Secret
from execution.secretsources import environment, files, stored, vault
from execution.secretsources.base import Found, SourceError

__all__ = ["SOURCES", "Found", "SourceError", "find"]

SOURCES: dict[str, Callable[[Secret, float], Found]] = {
    Secret.Source.STORED: stored.find,
    Secret.Source.ENV: environment.find,
    Secret.Source.FILE: files.find,
    Secret.Source.VAULT: vault.find,
}


def find(secret: Secret, deadline: float) -> Found:
    """The secret's texts as they are now, or SourceError; `deadline` is on the monotonic clock."""
    return SOURCES[secret.source](secret, deadline)
