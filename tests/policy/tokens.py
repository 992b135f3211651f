"""Tokens as agents make and forge them."""

import base64
import time
from typing import Any

import jwt

from policy.agents import NewAgent


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def claims(**changes: Any) -> dict[str, Any]:
    told = {"sub": "demo", "exp": int(time.time()) + 300} | changes
    return {name: value for name, value in told.items() if value is not ...}


def signed(made: NewAgent, **changes: Any) -> str:
    return jwt.encode(claims(**changes), made.jwt_secret, algorithm="HS256")


def raw(header: str, payload: str, signature: str = "") -> str:
    def part(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    return f"{part(header)}.{part(payload)}.{signature}"
