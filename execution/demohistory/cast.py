"""Who takes part in the demo's past, and which tools they use: toolkits, people in their roles, and agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User

from audit import trail
from policy import agents, permissions
from policy.models import Agent
from registry.manifests import import_manifest
from registry.models import Tool, Toolkit
from registry.publishing import publish

TOOLS_PER_TOOLKIT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """How calls of one tool usually go."""

    toolkit: str
    name: str
    about: str
    risk: str
    capability: str
    weight: int  # how often it is called, beside the others
    median_ms: float
    failing: float  # the part of its runs that goes wrong


SORTS = tuple(
    Sort(toolkit=kit, name=name, about=about, risk=risk, capability=power, weight=weight, median_ms=ms, failing=bad)
    for kit, name, about, risk, power, weight, ms, bad in (
        ("Tickets", "Find", "Finds tickets by words.", "low", "data.read", 300, 42, 0.01),
        ("Tickets", "Comment", "Adds a comment to a ticket.", "medium", "data.write", 120, 85, 0.02),
        ("Tickets", "Close", "Closes a ticket.", "medium", "data.write", 60, 90, 0.02),
        ("Library", "Search", "Searches the handbook.", "low", "data.read", 260, 130, 0.01),
        ("Library", "Fetch", "Fetches one page of the handbook.", "low", "data.read", 140, 35, 0.01),
        ("Weather", "Forecast", "Tells the weather of the next days.", "low", "network.read", 80, 410, 0.16),
        ("Stock", "Level", "Tells how many of an item are left.", "low", "data.read", 180, 18, 0.005),
        ("Stock", "Reserve", "Reserves items for an order.", "medium", "data.write", 50, 64, 0.03),
        ("Mail", "Draft", "Writes a draft.", "low", "data.write", 70, 55, 0.01),
        ("Mail", "Send", "Sends a message to a customer.", "high", "external.side_effect", 22, 620, 0.04),
        ("Billing", "Invoice", "Shows an invoice.", "low", "data.read", 90, 48, 0.01),
        ("Billing", "Refund", "Gives money back.", "high", "external.side_effect", 12, 880, 0.05),
    )
)
AGENTS = {
    "support-bot": ("Tickets", "Library", "Mail", "Billing"),
    "research-bot": ("Library", "Weather"),
    "stock-keeper": ("Stock", "Tickets"),
    "night-shift": ("Tickets", "Stock", "Weather"),
    "mail-room": ("Mail", "Library"),
}
PEOPLE = {"petra": "publisher", "amir": "approver", "polly": "policy owner", "audrey": "auditor", "otto": "operator"}
TITLES = {"Tickets": "Customer tickets", "Library": "The handbook", "Stock": "Warehouse stock"}


def people() -> dict[str, User]:
    """One person for each role; none of them has a password, so nobody can log in as them."""
    made = {}
    for name, role in PEOPLE.items():
        person = User.objects.create_user(name, f"{name}@placet.invalid", None, is_staff=True, first_name=name.title())
        person.groups.add(Group.objects.get(name=role))
        trail.record("user", name, "user.created", actor="shell", detail={"groups": [role]})
        made[name] = person
    return made


def toolkits(cast: dict[str, User]) -> None:
    """The demo's toolkits, published by one person and reviewed by another; approvers may decide their calls."""
    for name in dict.fromkeys(sort.toolkit for sort in SORTS):
        version = import_manifest(_manifest(name, "1.0.0"), by=cast["petra"]).version
        publish(version, by=cast["petra"], reviewed_by=cast["otto"])
        permissions.put(version.toolkit, "approve", cast["amir"], actor="shell")
    for name in ("Tickets", "Library"):
        permissions.put(Toolkit.objects.get(name=name), "audit", cast["petra"], actor="shell")


def callers(owner: User) -> dict[str, Agent]:
    """Agents that may call some of the toolkits; nobody knows their keys."""
    return {
        name: agents.create(name, actor="shell", owner=owner.get_username(), call=kits).agent
        for name, kits in AGENTS.items()
    }


def more_tools(count: int, by: User) -> None:
    """So many further tools that are hardly ever called, as a large company has them."""
    for number in range(count // TOOLS_PER_TOOLKIT):
        version = import_manifest(_records(number), by=by).version
        publish(version, by=by)


def tools() -> dict[str, Tool]:
    """The tools of `SORTS`, by "Toolkit.Tool"."""
    found = Tool.objects.select_related("version__toolkit").filter(version__toolkit__name__in=TOOLKITS)
    return {f"{tool.version.toolkit.name}.{tool.name}": tool for tool in found if tool.version.state == "published"}


TOOLKITS = tuple(dict.fromkeys(sort.toolkit for sort in SORTS))


def _manifest(name: str, version: str) -> dict[str, Any]:
    about = TITLES.get(name, name)
    return _shell(name, version, about, [_tool(sort) for sort in SORTS if sort.toolkit == name])


def next_version(name: str) -> dict[str, Any]:
    """A manifest that changes one thing, for a draft that waits for a review."""
    told = _manifest(name, "1.1.0")
    told["spec"]["tools"][0]["description"] += " Newest first."
    return told


def _tool(sort: Sort) -> dict[str, Any]:
    return {
        "name": sort.name,
        "description": sort.about,
        "risk": sort.risk,
        "capabilities": [sort.capability],
        "idempotency": "read" if sort.capability.endswith(".read") else "non_idempotent",
        "input": {
            "type": "object",
            "properties": {
                "customer": {"type": "string", "description": "Whose record it is.", "maxLength": 80},
                "amount": {"type": "number", "description": "How much.", "minimum": 0},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "Words to find it by."},
            },
            "required": ["customer"],
            "additionalProperties": False,
        },
        "output": {"type": "object"},
        "runtime": {"type": "http", "endpoint": "https://tools.example/records"},
    }


def _records(number: int) -> dict[str, Any]:
    sort = Sort(
        toolkit=f"Records{number}",
        name="",
        about="Looks a record up and returns it.",
        risk="low",
        capability="data.read",
        weight=0,
        median_ms=1,
        failing=0,
    )
    tools = [_tool(sort) | {"name": f"Look{each}"} for each in range(TOOLS_PER_TOOLKIT)]
    return _shell(sort.toolkit, "1.0.0", f"Records {number}", tools)


def _shell(name: str, version: str, title: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "placet.dev/v1",
        "kind": "Toolkit",
        "metadata": {"name": name, "version": version, "title": title, "description": f"{title}, for the demo."},
        "spec": {"tools": tools},
    }
