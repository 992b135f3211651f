"""Something to try at the first start: example toolkits, an administrator and an agent, all with random secrets."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from audit import trail
from execution.portal import examples

APPROVERS = ("ana", "ben")


def ensure(home: Path, url: str) -> tuple[dict[str, Any] | None, bool]:
    """What demo.json holds, and whether it was made just now. A database that already has users is left as it is."""
    path = home / "demo.json"
    if path.exists():
        kept = _read(path)
        if kept.get("url") != url:
            kept["url"] = url
            _write(path, kept)
        return kept, False
    if get_user_model().objects.exists():
        return None, False
    try:
        with transaction.atomic():
            made = _load(url)
            _write(path, made)  # before the commit: an agent whose key nobody knows must not come to be
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return made, True


def _load(url: str) -> dict[str, Any]:
    password = secrets.token_urlsafe(18)
    get_user_model().objects.create_superuser("admin", password=password)
    trail.record("user", "admin", "user.created", actor="system", detail={"is_superuser": True})
    approvers = [_approver(name) for name in APPROVERS]
    agent = examples.load(owner="admin")
    return {
        "url": url,
        "admin": {"username": "admin", "password": password},
        "agents": [{"name": agent.agent.name, "key": agent.key}],
        "approvers": approvers,
    }


def _approver(name: str) -> dict[str, str]:
    """A person who decides about payments and nothing else."""
    password = secrets.token_urlsafe(18)
    person = User.objects.create_user(name, f"{name}@placet.invalid", password, is_staff=True)
    group, _ = Group.objects.get_or_create(name=examples.APPROVERS)
    person.groups.add(group)
    trail.record("user", name, "user.created", actor="system", detail={"groups": [examples.APPROVERS]})
    return {"username": name, "password": password}


def _read(path: Path) -> dict[str, Any]:
    """What the first start kept, as far as a greeting needs it."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text())
        _ = kept["agents"][0]["key"]
    except OSError as error:
        raise ImproperlyConfigured(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise ImproperlyConfigured(
            f"{path} is damaged: restore it, or remove it if the demo's passwords and key are known elsewhere"
        ) from None
    return kept


def _write(path: Path, content: dict[str, Any]) -> None:
    """Whole or not at all, and for this user alone."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".demo-")
    with os.fdopen(handle, "w") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
    os.replace(beside, path)
