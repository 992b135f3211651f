"""Digests of a request: is it the same call again, and exactly what will run?"""

import hashlib
from dataclasses import astuple

from django.conf import settings

from audit.canonical import canonical
from audit.mac import mac
from execution.messages import CallRequest


def fingerprint(request: CallRequest) -> str:
    """Equal for the same request under the same call_id. Keyed, because it covers what the caller brought in secret."""
    facts: list[object] = [
        request.tool_text,
        request.arguments,
        dict(request.context.authorization),
        dict(request.context.secrets),
        request.context.user_id,
    ]
    if request.belief is not None:  # a wrong belief was refused; the right one is another request
        facts.append(astuple(request.belief))
    if request.authorship is not None and request.authorship.program:  # the same from a model's hand may be refused
        facts.append(sorted(request.authorship.program))
    return mac(settings.PLACET_AUDIT_KEY, b"call-fingerprint\0" + canonical(facts)).hex()


def arguments_digest(tool_digest: str, arguments: bytes) -> str:
    """Binds the exact canonical arguments to the exact tool they are for."""
    return hashlib.sha256(f"{tool_digest}\0".encode() + arguments).hexdigest()
