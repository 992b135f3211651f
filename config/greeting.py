"""What `make run` says when it is ready: where to go, as whom, and a first call that works as printed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

BODY = json.dumps({"request": {"tool_id": "Calculator.Add", "input": {"a": 2, "b": 3}}})


def greeting(home: Path, url: str, facts: dict[str, Any]) -> str:
    """Secrets are shown at the very first start only; later the file that keeps them is named."""
    lines = ["", f"Placet is ready at {url}", "", f"  portal    {url}/admin/"]
    demo, kept = facts["demo"], home / "demo.json"
    if demo is None:
        lines += ["", "  No demo data here. Users: manage.py createsuperuser. Agents: manage.py create_agent."]
    elif facts["is_first"]:
        agent = demo["agents"][0]
        lines += [f"  login     {demo['admin']['username']}", f"  password  {demo['admin']['password']}"]
        lines += [f"  agent     {agent['name']}", f"  key       {agent['key']}"]
        for person in demo.get("approvers", ()):
            lines += [f"  approver  {person['username']}, password {person['password']}"]
        lines += [f"  approvals {url}/approvals/", ""]
        lines += [f"  Shown this once; kept in {kept}, which only this user can read."]
        lines += ["", "  A first call:", "", *first_call(url, agent["key"])]
    else:
        lines += [f"  login, password and the demo agent's key are in {kept}"]
        lines += ["", "  A first call:", "", *first_call(url, _key_read_from(kept))]
    if os.geteuid() == 0:
        lines += ["", "  It runs as root: fine for a try, but a service should have a user of its own."]
    return "\n".join([*lines, "", "  Stop with Ctrl-C.", ""])


def first_call(url: str, key: str) -> list[str]:
    """A call for the shell; `key` may itself be a command in $(...). Python stands in where there is no curl."""
    if shutil.which("curl"):
        return [
            f'  curl -s {url}/tools/call -H "OXP-API-Key: {key}" \\',
            f"    -H 'Content-Type: application/json' -d '{BODY}'",
        ]
    headers = '{"OXP-API-Key": sys.argv[1], "Content-Type": "application/json"}'
    request = f'Request("{url}/tools/call", sys.argv[2].encode(), {headers})'
    program = f"import sys; from urllib.request import *; print(urlopen({request}).read().decode())"
    return [f"  python3 -c {shlex.quote(program)} \\", f"    \"{key}\" '{BODY}'"]


def _key_read_from(path: Path) -> str:
    program = f'import json; print(json.load(open({json.dumps(str(path))}))["agents"][0]["key"])'
    return f"$(python3 -c {shlex.quote(program)})"
