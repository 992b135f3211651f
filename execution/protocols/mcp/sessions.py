"""MCP sessions: sole writer of their rows. An id is known to the client that began, and worth nothing to another."""

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import orjson
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, transaction
from django.db.models.functions import Now

from audit.glance import glance
from execution.models import McpSession
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, TOO_MANY, RpcError
from policy.caller import Caller
from policy.models import Agent
from registry.clock import LATER, Later, later_param

QUIET = 60  # seconds unused after which a session makes room for a new one of the same caller
MAX_CAPABILITIES = 10_000  # bytes
MAX_CLIENT = 200
MAX_ID = 200
BATCH = 100
_READ = ("id", "key", "agent_id", "version", "capabilities", "log_level")  # in the order of the model


def begin(caller: Caller, *, version: str, capabilities: Mapping[str, Any], client: str) -> str:
    """The id of a new session; RpcError if the caller has as many in use as it may."""
    if len(orjson.dumps(capabilities)) > MAX_CAPABILITIES:
        raise RpcError(INVALID_PARAMS, f"params.capabilities is larger than {MAX_CAPABILITIES} bytes")
    _forget_idle()
    id = secrets.token_urlsafe(32)
    with transaction.atomic():
        _make_room(caller)
        McpSession.objects.create(
            key=_key(id),
            agent_id=caller.agent_id,
            version=version,
            capabilities=dict(capabilities),
            client=client[:MAX_CLIENT],
        )
    return id


def find(caller: Caller, id: str) -> McpSession | None:
    """The caller's own session of this id, if it was not ended and not left alone for too long."""
    if not id or len(id) > MAX_ID:
        return None
    vendor = connection.vendor
    ages = [later_param(vendor, -QUIET / 2), later_param(vendor, -settings.PLACET_MCP_IDLE)]
    found = glance(_find_sql(vendor), [ages[0], _key(id), caller.agent_id, ages[1]])
    if found is None:
        return None
    *known, capabilities, level, is_due = found
    declared = orjson.loads(capabilities) if isinstance(capabilities, str) else capabilities
    session = McpSession.from_db(DEFAULT_DB_ALIAS, _READ, [*known, declared, level])
    if is_due:
        touch(session)
    return session


@lru_cache(maxsize=2)
def _find_sql(vendor: str) -> str:
    """Every message of a session asks this, so that it is not compiled anew each time."""
    columns = ", ".join(f'"{name}"' for name in _READ)
    later = LATER[vendor]
    return (
        f'SELECT {columns}, "seen_at" < {later} FROM "{McpSession._meta.db_table}"'
        f' WHERE "key" = %s AND "agent_id" = %s AND "seen_at" > {later}'
    )


def touch(session: McpSession) -> bool:
    """It is in use; whether it still is there."""
    return bool(McpSession.objects.filter(pk=session.pk).update(seen_at=Now()))


def kept(session: McpSession) -> Callable[[], bool]:
    """Whether it still is there, for whoever asks again and again and so keeps it in use."""
    touched_at = time.monotonic()

    def is_open() -> bool:
        nonlocal touched_at
        if time.monotonic() - touched_at < QUIET / 2:
            return McpSession.objects.filter(pk=session.pk).exists()
        touched_at = time.monotonic()
        return touch(session)

    return is_open


def set_level(caller: Caller, id: str, level: str) -> None:
    McpSession.objects.filter(key=_key(id), agent_id=caller.agent_id).update(log_level=level)


def end(session: McpSession) -> None:
    session.delete()


def _make_room(caller: Caller) -> None:
    """Clients seldom say that they are done, so one that has been quiet gives way; ones in use do not."""
    Agent.objects.select_for_update(no_key=True).get(pk=caller.agent_id)  # of two at once, one is the last
    own = McpSession.objects.filter(agent_id=caller.agent_id)
    if own.count() < settings.PLACET_MAX_SESSIONS:
        return
    quiet = own.filter(seen_at__lt=Later(-QUIET)).order_by("seen_at").first()
    if quiet is None:
        message = f"This agent has {settings.PLACET_MAX_SESSIONS} MCP sessions in use; end one with DELETE"
        raise RpcError(TOO_MANY, message, http=429, headers={"Retry-After": str(QUIET)})
    quiet.delete()


def _forget_idle() -> None:
    """Those that nobody can use any more, a few at a time."""
    idle = McpSession.objects.filter(seen_at__lt=Later(-settings.PLACET_MCP_IDLE)).order_by("seen_at")
    if gone := list(idle.values_list("pk", flat=True)[:BATCH]):
        McpSession.objects.filter(pk__in=gone).delete()


def _key(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()
