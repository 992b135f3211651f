"""The product with the suite's toolkits, and a mount that needs no key: the suite cannot bring one."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stories.product import ROOT, Product

AGENT = "conformance"
TOOLKITS = Path(__file__).parent / "toolkits"
PREPARE = """
import sys
import django; django.setup()
from django.core.management import call_command
for folder in sys.argv[2:]:
    call_command("import_toolkit", folder, publish=True, reviewer="admin", verbosity=0, stdout=sys.stderr)
call_command("create_agent", sys.argv[1], call=[folder.rpartition("/")[2] for folder in sys.argv[2:]], json=True)
"""


@contextmanager
def mounted(home: Path) -> Iterator[str]:
    """The address of its /mcp. A name and not a number, because one scenario is about names."""
    running = Product(home, environment={"PLACET_ANONYMOUS_AGENT": AGENT})
    try:
        running.ready()
        prepare(home)
        warm_up(running.port)
        yield f"http://localhost:{running.port}/mcp"
    finally:
        running.finish()


def prepare(home: Path) -> None:
    folders = sorted(str(folder) for folder in TOOLKITS.iterdir() if folder.is_dir())
    own = {"PLACET_HOME": str(home), "DJANGO_SETTINGS_MODULE": "config.settings.local"}
    command = [sys.executable, "-c", PREPARE, AGENT, *folders]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"the toolkits could not be published: {done.stderr}")


def warm_up(port: int) -> None:
    """The suite waits half a second for some answers, and the first call of a toolkit starts its process."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "test_logging_tool"}}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/rpc", json.dumps(request), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    if "result" not in answer:
        raise RuntimeError(f"the first call failed: {answer}")
