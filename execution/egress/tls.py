"""The terms of TLS: from 1.2 on, a certificate that the system trusts, and the name that was asked for."""

import os
import ssl
from functools import lru_cache


def context(*alpn: str) -> ssl.SSLContext:
    """For clients that speak one of these protocols; read anew only if the system's trust lies elsewhere now."""
    return _context(alpn, os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@lru_cache(maxsize=8)
def _context(alpn: tuple[str, ...], file: str, folder: str) -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    if alpn:
        made.set_alpn_protocols(list(alpn))
    return made
