"""ReturnAddress: where a tool that answers later sends its answer, and what proves that it is the one."""

import secrets
from typing import NamedTuple
from urllib.parse import quote

from django.conf import settings


class ReturnAddress(NamedTuple):
    """Good for one answer to one attempt."""

    url: str
    token: str

    def __repr__(self) -> str:
        return "ReturnAddress(hidden)"


def new_token() -> str:
    return secrets.token_urlsafe(32)


def return_address(request_id: str, token: str) -> ReturnAddress:
    return ReturnAddress(f"{settings.PLACET_URL.rstrip('/')}/v1/tool-callbacks/{quote(request_id, safe='')}", token)
