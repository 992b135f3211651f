"""How a tool runs (runtime), what Placet gives it (auth) and what its callers bring (requirements)."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from registry import durations, sources
from registry.fields import Fields, ManifestError, text_at
from registry.risk import RiskLevel

TYPES = ("python", "http", "external", "grpc", "webhook-callback", "container", "wasm", "mcp", "session")
WITH_SOURCE = ("python", "wasm")  # what these run lies in the files beside the manifest
MAX_TIMEOUT = 3600.0
MAX_INLINE = 5.0
MAX_BACKOFF = 86_400.0

_SHARED = ("type", "dispatch", "timeout", "retry")
_RETRY = ("maxAttempts", "backoff", "maxBackoff", "jitter")
_PROFILES = ("bearer", "api_key_header", "basic", "oauth2_client_credentials")
_ENTRYPOINT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_IMAGE = re.compile(r"[a-z0-9][a-z0-9._/:-]{0,254}@sha256:[0-9a-f]{64}", re.ASCII)
_MEMORY = re.compile(r"[1-9][0-9]{0,6}[kmg]", re.ASCII)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}", re.ASCII)
_SECRET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?", re.ASCII)
_HOST = re.compile(r"(grpcs?://)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}", re.ASCII)
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*", re.ASCII)


def runtime(value: Any, path: str, risk: RiskLevel) -> dict[str, Any]:
    """A runtime binding with every default said and every duration in its one form."""
    kind = Fields(value, path, _every_field()).choice("type", TYPES)
    fields = Fields(value, path, (*_SHARED, *_OPTIONS[kind]))
    dispatch = fields.choice("dispatch", ("queue", "inline"), "queue")
    timeout = _duration(fields, "timeout", "5s" if dispatch == "inline" else "30s", most=MAX_TIMEOUT)
    if durations.seconds(timeout) == 0:
        raise ManifestError(fields.at("timeout"), "must be longer than nothing")
    if dispatch == "inline":
        if risk.needs_review:
            raise ManifestError(fields.at("dispatch"), "inline is only for tools of low or medium risk")
        if durations.seconds(timeout) > MAX_INLINE:
            raise ManifestError(fields.at("timeout"), f"an inline tool has at most {MAX_INLINE:g}s")
        if kind == "session":
            raise ManifestError(fields.at("dispatch"), "a tool that outside workers pull waits in the queue")
    options = {name: read(fields, name) for name, read in _OPTIONS[kind].items()}
    return {
        "type": kind,
        **{name: option for name, option in options.items() if option is not None},
        "dispatch": dispatch,
        "timeout": timeout,
        "retry": _retry(fields.raw("retry", {}), fields.at("retry")),
    }


def auth(value: Any, path: str, runtime: str = "") -> dict[str, Any]:
    """What Placet brings to the tool; {} if it brings nothing."""
    if value is None or value == {}:
        return {}
    if runtime == "session":
        raise ManifestError(path, "has no meaning here: outside workers have credentials of their own")
    fields = Fields(value, path, ("profile", "secretRef", "headerName", "tokenUrl", "scopes"))
    profile = fields.choice("profile", _PROFILES, "bearer")
    found: dict[str, Any] = {
        "profile": profile,
        "secretRef": _matching(fields, "secretRef", _SECRET, "name or name:key"),
    }
    needs = {"api_key_header": ("headerName",), "oauth2_client_credentials": ("tokenUrl", "scopes")}.get(profile, ())
    for name in ("headerName", "tokenUrl", "scopes"):
        if fields.has(name) and name not in needs:
            raise ManifestError(fields.at(name), f"has no meaning for the profile {profile}")
    if "headerName" in needs:
        found["headerName"] = _matching(fields, "headerName", _HEADER, "a header's name such as X-Api-Key")
    if "tokenUrl" in needs:
        found["tokenUrl"] = _url(fields, "tokenUrl")
        found["scopes"] = fields.texts("scopes")
    return found


def requirements(value: Any, path: str) -> dict[str, Any]:
    """What the caller must bring, spelled as OXP does; only what is really required."""
    fields = Fields({} if value is None else value, path, ("authorization", "secrets", "userId"))
    found: dict[str, Any] = {}
    if authorizations := [_authorization(item, where) for where, item in fields.items("authorization", most=20)]:
        found["authorization"] = authorizations
    secrets = [{"id": Fields(item, where, ("id",)).text("id")} for where, item in fields.items("secrets", most=50)]
    if secrets:
        found["secrets"] = secrets
    for name, entries in found.items():
        if len({entry["id"] for entry in entries}) != len(entries):
            raise ManifestError(fields.at(name), "names the same id twice")
    if fields.flag("userId"):
        found["user_id"] = True
    return found


def _authorization(value: Any, path: str) -> dict[str, Any]:
    fields = Fields(value, path, ("id", "oauth2"))
    found: dict[str, Any] = {"id": fields.text("id")}
    if fields.has("oauth2"):
        found["oauth2"] = {"scopes": Fields(fields.raw("oauth2"), fields.at("oauth2"), ("scopes",)).texts("scopes")}
    return found


def _retry(value: Any, path: str) -> dict[str, Any]:
    fields = Fields(value, path, _RETRY)
    return {
        "maxAttempts": fields.whole("maxAttempts", 1, least=1, most=20),
        "backoff": _duration(fields, "backoff", "0s", most=MAX_BACKOFF),
        "maxBackoff": _duration(fields, "maxBackoff", "30s", most=MAX_BACKOFF),
        "jitter": fields.choice("jitter", ("none", "full", "equal"), "none"),
    }


def _duration(fields: Fields, name: str, default: str, *, most: float) -> str:
    text = text_at(fields.at(name), fields.raw(name, default))
    try:
        if durations.seconds(text) > most:
            raise ManifestError(fields.at(name), f"must be at most {durations.short(int(most))}")
        return durations.normal(text)
    except ValueError as error:
        raise ManifestError(fields.at(name), str(error)) from None


def _matching(fields: Fields, name: str, form: re.Pattern[str], words: str, *, most: int = 400) -> str:
    value = fields.text(name, most=most)
    if not form.fullmatch(value):
        raise ManifestError(fields.at(name), f"must be {words}")
    return value


def _url(fields: Fields, name: str) -> str:
    value = fields.text(name, most=2000)
    try:
        url = urlsplit(value)
        is_good = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        is_good = False
    if not is_good or not value.isprintable() or " " in value or "\\" in value:
        raise ManifestError(fields.at(name), "must be an http or https address")
    if url.username is not None or url.password is not None or url.fragment:
        raise ManifestError(fields.at(name), "must hold neither a login nor a fragment; secrets belong in auth")
    return value


def _grpc(fields: Fields, name: str) -> str:
    return _matching(fields, name, _HOST, "grpcs://host:port, grpc://host:port or host:port")


def _source(fields: Fields, name: str) -> str | None:
    return _matching(fields, name, sources.DIGEST, "sha256: and 64 hexadecimal digits") if fields.has(name) else None


def _image(fields: Fields, name: str) -> str:
    return _matching(fields, name, _IMAGE, "an image pinned by its digest, name@sha256:…")


def _memory(default: str) -> Callable[[Fields, str], str]:
    def read(fields: Fields, name: str) -> str:
        value = fields.text(name, default)
        if not _MEMORY.fullmatch(value):
            raise ManifestError(fields.at(name), "must be a size such as 128m")
        return value

    return read


def _cpus(fields: Fields, name: str) -> float:
    value = fields.raw(name, 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 64:
        raise ManifestError(fields.at(name), "must be a number above 0 and at most 64")
    return float(value)


def _wasm_entrypoint(fields: Fields, name: str) -> str:
    return fields.text(name, "run", most=100) or "run"


_Reader = Callable[[Fields, str], Any]
_OPTIONS: dict[str, dict[str, _Reader]] = {
    "python": {
        "entrypoint": lambda fields, name: _matching(fields, name, _ENTRYPOINT, "module:function"),
        "source": _source,
    },
    "http": {"endpoint": _url},
    "external": {"endpoint": _url},
    "webhook-callback": {"endpoint": _url},
    "grpc": {"endpoint": _grpc},
    "mcp": {"endpoint": _url, "tool": lambda fields, name: fields.text(name, most=128)},
    "container": {
        "image": _image,
        "command": lambda fields, name: [text_at(where, item, most=2000) for where, item in fields.items(name)],
        "network": lambda fields, name: fields.choice(name, ("none",), "none"),
        "memory": _memory("128m"),
        "cpus": _cpus,
        "pids": lambda fields, name: fields.whole(name, 64, least=1, most=4096),
    },
    "wasm": {
        "module": lambda fields, name: _matching(fields, name, _FILE, "a file beside the manifest, such as tool.wasm"),
        "entrypoint": _wasm_entrypoint,
        "fuel": lambda fields, name: fields.whole(name, 1_000_000, least=1, most=10**15),
        "memory": _memory("64m"),
        "source": _source,
    },
    "session": {},
}


def _every_field() -> list[str]:
    return [*_SHARED, *{name: None for options in _OPTIONS.values() for name in options}]
