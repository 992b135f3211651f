"""`python -m tests [pytest arguments]`: the whole suite on SQLite, then on PostgreSQL 18 and Redis."""

from __future__ import annotations

import os
import subprocess
import sys
import time

RUNS = {"SQLite": "sqlite", "PostgreSQL 18 and Redis": "postgres"}
NOTHING_COLLECTED = 5


def main(arguments: list[str]) -> int:
    results = {}
    for title, database in RUNS.items():
        print(f"\n=== {title} ===", flush=True)
        begin = time.monotonic()
        environment = {**os.environ, "PLACET_TEST_DATABASE": database}
        code = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "2", *arguments], env=environment).returncode
        # Tests that touch no database run once: nothing may be left for the second run.
        is_good = code == 0 or (code == NOTHING_COLLECTED and database != "sqlite")
        results[title] = (is_good, time.monotonic() - begin)
    print("\n=== summary ===")
    for title, (is_good, seconds) in results.items():
        print(f"{title:<24} {'passed' if is_good else 'FAILED'} in {seconds:.0f} s")
    return 0 if all(is_good for is_good, _ in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
