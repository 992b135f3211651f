"""Something to try in an empty registry: the example toolkits, a policy that asks people, and an agent to call with."""

from io import StringIO
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import transaction

from policy import agents, permissions
from policy.agents import NewAgent
from policy.models import Agent, Revision
from registry.models import Toolkit

FOLDER = Path(settings.BASE_DIR) / "examples"
TOOLKITS = ("calculator/1.0.0.yaml", "calculator/1.1.0.yaml", "doorbell", "system")
NAMES = ("Calculator", "Doorbell", "System", "Payments")
APPROVERS = "payments-approvers"
AGENT = "demo"


def is_wanted() -> bool:
    """Whether nothing stands in the way: no toolkit, no policy, no agent of that name, and no production."""
    if settings.PLACET_PRODUCTION or not FOLDER.is_dir():
        return False
    is_used = Toolkit.objects.exists() or Revision.objects.exists() or Agent.objects.filter(name=AGENT).exists()
    return not is_used


@transaction.atomic
def load(owner: str) -> NewAgent:
    """All of it or nothing; `owner` answers for the agent and for the review of what moves money."""
    for toolkit in TOOLKITS:
        call_command("import_toolkit", str(FOLDER / toolkit), publish=True, verbosity=0, stdout=StringIO())
    payments = str(FOLDER / "payments")
    call_command("import_toolkit", payments, publish=True, reviewer=owner, verbosity=0, stdout=StringIO())
    group, _ = Group.objects.get_or_create(name=APPROVERS)
    permissions.put(Toolkit.objects.get(name="Payments"), "approve", group, actor="system")
    call_command("import_policy", f"{payments}/policy.yaml", activate=True, verbosity=0, stdout=StringIO())
    return agents.create(AGENT, actor="system", owner=owner, call=NAMES)
