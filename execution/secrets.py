"""Secret references to values, and values to what a tool is sent: only here, fresh for each attempt."""

import base64
import time
from collections.abc import Mapping

from django.db import InterfaceError, OperationalError

from audit.needles import problem
from execution import oauth, secretsources, secretstore
from execution.credentials import NO_CREDENTIALS, Credentials
from execution.errors import CallError, ErrorCode
from execution.models import Secret
from execution.oauth import Client, TokenCache, unresolved
from execution.runtimes.cancel import Cancel
from execution.secretsources import Found, SourceError
from execution.secretvalues import WHOLE, fits_header
from registry.toolspec import ToolSpec

PATIENCE = 10.0  # seconds for which a source or a token endpoint is waited for, if the tool has as many
OAUTH = "oauth2_client_credentials"
TOKENS = TokenCache()


def resolve(tool: ToolSpec, *, cancel: Cancel | None = None) -> Credentials:
    """What this tool is to be sent now, or CallError before anything was sent."""
    return _credentials(tool, cancel) if tool.auth else NO_CREDENTIALS


def rejected(tool: ToolSpec, credentials: Credentials, *, cancel: Cancel | None = None) -> Credentials | None:
    """After a 401: credentials with another token, or None where asking again would bring the same."""
    if credentials.profile != OAUTH:
        return None
    return _credentials(tool, cancel, rejected=credentials.environment["TOOL_AUTH_BEARER"])


def _credentials(tool: ToolSpec, cancel: Cancel | None, rejected: str = "") -> Credentials:
    deadline = time.monotonic() + min(tool.runtime.timeout, PATIENCE)
    profile, ref = _setting(tool, "profile"), _setting(tool, "secretRef")
    name, _, key = ref.partition(":")
    found = _found(tool, name, deadline)
    if profile == OAUTH:
        if key:
            raise _misconfigured(f"The secret {ref}: {OAUTH} needs the whole secret, with client_id and client_secret")
        return _oauth(tool, name, found, deadline, cancel, rejected)
    value = _text(found, name, key or WHOLE)
    match profile:
        case "bearer":
            return _ready(tool, _bearer(value), {ref: value}, TOOL_AUTH_BEARER=value)
        case "api_key_header":
            header = _setting(tool, "headerName")
            sent = {header: value}
            return _ready(tool, sent, {ref: value}, TOOL_AUTH_HEADER_NAME=header, TOOL_AUTH_HEADER_VALUE=value)
        case "basic":
            return _basic(tool, ref, value)
    raise _misconfigured(f"There is no profile {profile}")


def _setting(tool: ToolSpec, name: str) -> str:
    """What the manifest had to say; a row from elsewhere may lack it."""
    value = tool.auth.get(name)
    if not isinstance(value, str) or not value:
        raise _misconfigured(f"The manifest says no {name}")
    return value


def _found(tool: ToolSpec, name: str, deadline: float) -> Found:
    try:
        return _looked_up(tool, name, deadline)
    except (OperationalError, InterfaceError) as error:  # nothing has run yet: a later attempt is as good
        raise unresolved(f"The secret {name} cannot be read now", can_retry=True) from error


def _looked_up(tool: ToolSpec, name: str, deadline: float) -> Found:
    secret = Secret.objects.filter(name=name).first()
    if secret is None:
        raise unresolved(f"There is no secret named {name}")
    toolkits = set(secret.toolkits.values_list("pk", flat=True))
    if toolkits and tool.toolkit_id not in toolkits:
        raise unresolved(f"{tool.toolkit} may not use the secret {name}")
    try:
        found = secretsources.find(secret, deadline)
    except SourceError as error:
        raise unresolved(f"The secret {name}: {error}", can_retry=error.can_retry) from error
    secretstore.used(secret.pk, tool.id)
    return found


def _text(found: Found, name: str, key: str) -> str:
    """One text of a secret; what lies outside is looked at here as what is stored was when it was saved."""
    value = found.values.get(key, "")
    if not value:
        raise unresolved(f"The secret {name} has no {key}")
    if key != "client_id" and problem(value):
        raise unresolved(f"The secret {name}: its {key} is too short or too common to be masked safely")
    return value


def _basic(tool: ToolSpec, ref: str, value: str) -> Credentials:
    _, colon, password = value.partition(":")
    if not colon:
        raise _misconfigured(f"The secret {ref}: basic needs user:password")
    composite = base64.b64encode(value.encode()).decode()
    needles = {ref: value, f"{ref}/basic": composite}
    if not problem(password):
        needles[f"{ref}/password"] = password
    return _ready(tool, {"Authorization": f"Basic {composite}"}, needles, TOOL_AUTH_BASIC=composite)


def _oauth(
    tool: ToolSpec, name: str, found: Found, deadline: float, cancel: Cancel | None, rejected: str
) -> Credentials:
    client = Client(
        token_url=_setting(tool, "tokenUrl"),
        client_id=_text(found, name, "client_id"),
        scopes=tuple(tool.auth.get("scopes", ())),
        secret_version=f"{name}:{found.version}",
        client_secret=_text(found, name, "client_secret"),
    )
    token = TOKENS.get(
        client,
        lambda: oauth.exchange(client, deadline=deadline, cancel=cancel),
        deadline=deadline,
        cancel=cancel,
        rejected=rejected,
    )
    needles = {f"{name}/token": token, f"{name}:client_secret": client.client_secret}
    if not problem(client.client_id):
        needles[f"{name}:client_id"] = client.client_id
    return _ready(tool, _bearer(token), needles, TOOL_AUTH_BEARER=token)


def _bearer(value: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {value}"}


def _ready(tool: ToolSpec, headers: Mapping[str, str], needles: Mapping[str, str], **environment: str) -> Credentials:
    if not all(map(fits_header, headers.values())):
        raise _misconfigured(f"The secret {tool.auth['secretRef']}: its value cannot be sent as a header")
    return Credentials(
        profile=tool.auth["profile"],
        secret_ref=tool.auth["secretRef"],
        scopes=tuple(tool.auth.get("scopes", ())),
        headers=headers,
        environment=environment,
        needles=needles,
    )


def _misconfigured(why: str) -> CallError:
    return CallError(
        ErrorCode.RUNTIME_INVALID,
        "The tool's authentication is not set up right",
        developer_message=why,
        is_sent=False,
    )
