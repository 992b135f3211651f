"""What must hold before Placet serves anyone."""

import ipaddress
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@register()
def anonymous_agent_needs_a_loopback_listener(**_: Any) -> list[CheckMessage]:
    if settings.PLACET_ANONYMOUS_AGENT and not is_loopback(settings.PLACET_HOST):
        return [
            Error(
                "PLACET_ANONYMOUS_AGENT lets anyone call, so HOST must be a loopback address, "
                f"not {settings.PLACET_HOST}.",
                hint="Listen on 127.0.0.1, or unset PLACET_ANONYMOUS_AGENT and use keys.",
                id="policy.E001",
            )
        ]
    return []
