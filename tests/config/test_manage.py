"""manage.py in a home where nothing was prepared says so in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", [["verify_audit"], ["create_agent", "robot"], ["export_policy"]])
def test_a_home_without_tables_is_named_and_what_makes_them(
    tmp_path: Path, database_url: str, command: list[str]
) -> None:
    own = {
        "PLACET_HOME": str(tmp_path),
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "config.settings.local",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=os.environ | own, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1:] == [
        f"The database of PLACET_HOME={tmp_path} has no tables yet, or not all: "
        "`make run` makes them, and so does `manage.py migrate`."
    ]
    assert "Traceback" not in done.stderr
