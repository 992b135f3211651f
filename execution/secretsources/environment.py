"""Secrets in the environment: PLACET_SECRET_ and the name in upper snake case."""

import os
import re

from execution.models import Secret
from execution.secretsources.base import Found, SourceError, found_text

PREFIX = "PLACET_SECRET_"
OURS = {"PLACET_SECRET_KEY", "PLACET_SECRET_FILES"}  # Placet's own settings, which no tool may be sent


def variable(name: str) -> str:
    """The variable that holds the secret of this name."""
    return PREFIX + re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper()


def find(secret: Secret, deadline: float) -> Found:
    name = variable(secret.name)
    if name in OURS:
        raise SourceError(f"{name} is a setting of Placet itself")
    if name not in os.environ:
        raise SourceError(f"{name} is not set")
    return found_text(os.environ[name], name)
