"""`make conformance`: the official MCP suite against the product, on both wires, beside a written baseline."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conformance import tools
from tests.conformance.verdict import judge, read_baseline, read_results, table
from tests.stories.product import ROOT, Product

HERE = Path(__file__).parent
WIRES = ("2026-07-28", "2025-11-25")
AGENT = "conformance"
TOOLKITS = ("basic", "test", "json", "slow", "failing")
PREPARE = """
import sys
import django; django.setup()
from django.core.management import call_command
for folder in sys.argv[2:]:
    call_command("import_toolkit", folder, publish=True, reviewer="admin", verbosity=0, stdout=sys.stderr)
call_command("create_agent", sys.argv[1], call=[folder.rpartition("/")[2] for folder in sys.argv[2:]], json=True)
"""


def main() -> int:
    if lack := tools.lack():
        print(f"Not run: {lack}", file=sys.stderr)
        return 1
    baseline = read_baseline(HERE / "baseline.yml")
    is_good = True
    with tempfile.TemporaryDirectory(prefix="placet-conformance-") as folder, product(Path(folder) / "home") as url:
        for wire in WIRES:
            began = time.monotonic()
            scenarios = required(wire)
            output = Path(folder) / wire
            output.mkdir()
            suite(url, wire, output)
            verdicts = [judge(found, baseline[wire].get(found.scenario)) for found in read_results(output, scenarios)]
            is_good &= all(verdict.is_good for verdict in verdicts)
            print(f"\nMCP {wire}, suite {tools.version_of('@modelcontextprotocol/conformance')}\n")
            print("\n".join(table(verdicts)))
            unknown = set(baseline[wire]) - {verdict.found.scenario for verdict in verdicts}
            if unknown:
                print(f"The baseline speaks of scenarios that were not run: {', '.join(sorted(unknown))}")
                is_good = False
            counts = {word: sum(verdict.word == word for verdict in verdicts) for word in ("pass", "known")}
            bad = len(verdicts) - sum(counts.values())
            took = time.monotonic() - began
            print(f"\n{counts['pass']} pass, {counts['known']} known not to, {bad} unexpected, in {took:.0f} s")
    return 0 if is_good else 1


@contextmanager
def product(home: Path) -> Iterator[str]:
    """The product with the suite's toolkits and a mount that needs no key; its address."""
    running = Product(home, environment={"PLACET_ANONYMOUS_AGENT": AGENT})
    try:
        running.ready()
        folders = [str(HERE / "toolkits" / name) for name in TOOLKITS]
        own = {"PLACET_HOME": str(home), "DJANGO_SETTINGS_MODULE": "config.settings.local"}
        subprocess.run(
            [sys.executable, "-c", PREPARE, AGENT, *folders],
            cwd=ROOT,
            env=os.environ | own,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=60,
        )
        warm_up(running.port)
        yield f"http://localhost:{running.port}/mcp"
    finally:
        running.finish()


def warm_up(port: int) -> None:
    """The suite waits half a second for some answers, and the first call of a toolkit starts its process."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "test_logging_tool"}}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/rpc", json.dumps(request), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        assert "result" in answer, answer
    finally:
        connection.close()


def required(wire: str) -> dict[str, bool]:
    """The server scenarios of a revision, and whether they are scored."""
    listed = tools.run(tools.command("conformance", "list", "--server", "--requirements", wire), 60).stdout
    scored, _, extra = listed.partition("never scored")
    servers = scored.partition("Server scenarios")[2].partition("Client scenarios")[0]
    names = dict.fromkeys(re.findall(r"^\s+- (\S+)", servers, re.MULTILINE), True)
    return names | dict.fromkeys(re.findall(r"^\s+- (\S+) \[server\]", extra, re.MULTILINE), False)


def suite(url: str, wire: str, output: Path) -> None:
    """Its exit code says less than its results, which are in files."""
    command = tools.command("conformance", "server", "--url", url, "--requirements", wire, "-o", str(output))
    done = tools.run(command, 300)
    (output / "said.txt").write_text(json.dumps([done.returncode]) + done.stdout + done.stderr)
    if os.environ.get("CONFORMANCE_OUTPUT"):
        kept = Path(os.environ["CONFORMANCE_OUTPUT"]) / wire
        kept.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", str(output), str(kept)], check=True)


if __name__ == "__main__":
    sys.exit(main())
