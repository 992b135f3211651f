"""The part of `make check` that asks Django: migrations complete, OpenAPI file current, production settings safe."""

from __future__ import annotations

import base64
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPECTACULAR = ("spectacular", "--validate", "--fail-on-warn", "--file")
OPENAPI = ROOT / "docs" / "openapi.yaml"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="placet-check-") as folder:
        home = Path(folder)
        own = {"PLACET_HOME": str(home), "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "config.settings.local"}
        local = {**os.environ, **own}
        production = {**local, **throw_away_settings(), "DJANGO_SETTINGS_MODULE": "config.settings.production"}
        fresh = home / "openapi.yaml"
        checks = {
            "migrations are complete": manage(local, "makemigrations", "--check", "--dry-run"),
            "the OpenAPI document is valid": manage(local, *SPECTACULAR, str(fresh)),
            "docs/openapi.yaml is current": is_current(fresh),
            "production settings are safe": manage(production, "check", "--deploy", "--fail-level", "WARNING"),
        }
    for claim, holds in checks.items():
        print(f"{'ok    ' if holds else 'FAILED'} {claim}")
    return 0 if all(checks.values()) else 1


def throw_away_settings() -> dict[str, str]:
    """What production demands, good for this one check."""

    def key() -> str:
        return base64.b64encode(secrets.token_bytes(32)).decode()

    return {
        "PLACET_PRODUCTION": "1",
        "PLACET_SECRET_KEY": secrets.token_urlsafe(48),
        "PLACET_AUDIT_KEY": key(),
        "PLACET_SEAL_SEED": key(),
        "PLACET_SEALING_KEYS": f"k1:{key()}",
        "ALLOWED_HOSTS": "placet.example",
        "DATABASE_URL": "postgres://placet@127.0.0.1/placet",
    }


def manage(environment: dict[str, str], *command: str) -> bool:
    return subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, env=environment).returncode == 0


def is_current(fresh: Path) -> bool:
    if fresh.exists() and OPENAPI.exists() and fresh.read_bytes() == OPENAPI.read_bytes():
        return True
    print("Write it anew: .venv/bin/python manage.py spectacular --file docs/openapi.yaml", file=sys.stderr)
    return False


if __name__ == "__main__":
    sys.exit(main())
