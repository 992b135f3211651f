"""`python -m bench.history CALLS TOOLS`: a long past for a home, as `make_demo_history` writes it."""

from __future__ import annotations

import sys

import django


def main(calls: int, tools: int) -> None:
    """The demo's past, and so many tools more that the demo agent may call."""
    django.setup()
    from guardian.shortcuts import assign_perm

    from execution import demohistory
    from policy.models import Agent
    from registry.models import Toolkit

    demohistory.make(calls=calls, events=10 * calls, tools=tools)
    agent = Agent.objects.select_related("user").get(name="demo")
    for toolkit in Toolkit.objects.filter(name__startswith="Records"):
        assign_perm("registry.call_toolkit", agent.user, toolkit)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
