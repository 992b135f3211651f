"""`python -m tests [pytest arguments]`: the whole suite on SQLite, then on PostgreSQL 18 and Redis."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

DATABASES = {"SQLite": "sqlite", "PostgreSQL 18 and Redis": "postgres"}
# For two cores. Parts wait now and then, and stories, which start the whole product and kill parts of it, wait more
# than they work: so four go on at a time, stories in the order of tests/stories/conftest.py.
PARTS = {
    "parts": ["-n", "4", "--ignore=tests/stories"],
    "stories": ["-n", "4", "--dist", "loadfile", "--no-loadscope-reorder", "tests/stories"],
}
NOTHING_COLLECTED = 5


def main(arguments: list[str]) -> int:
    results = {}
    for title, database in DATABASES.items():
        for part, own in ({"": []} if arguments else PARTS).items():
            name = f"{title}, {part}" if part else title
            print(f"\n=== {name} ===", flush=True)
            begin = time.monotonic()
            code = run([*own, *arguments], database)
            # Tests that touch no database run once: nothing may be left for the second run.
            is_good = code == 0 or (code == NOTHING_COLLECTED and database != "sqlite")
            results[name] = (is_good, time.monotonic() - begin)
    print("\n=== summary ===")
    for name, (is_good, seconds) in results.items():
        print(f"{name:<32} {'passed' if is_good else 'FAILED'} in {seconds:.0f} s")
    return 0 if all(is_good for is_good, _ in results.values()) else 1


def run(arguments: list[str], database: str) -> int:
    # In the background of a shell this signal is ignored, and so it would be by every server that tests end with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    environment = {**os.environ, "PLACET_TEST_DATABASE": database}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes are started: each would compile anew
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
