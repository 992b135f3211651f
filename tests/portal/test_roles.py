"""Ready-made groups: each shows its people their work in the sidebar and on the home page, and nothing else."""

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, User
from guardian.shortcuts import assign_perm

from execution.portal import roles
from registry.models import Tool
from tests.portal.conftest import MakeCall

pytestmark = pytest.mark.django_db

ALWAYS = {"Home", "API"}
REGISTRY = {"Toolkits", "Versions", "Tools", "Capabilities"}
EVIDENCE = {"Calls", "Attempts", "Callbacks", "Audit events"}
RUNNING = {"Breakers", "Demotions", "Upstream pins", "Outside workers"}
# The pages that each role has, of those that are named here.
PAGES = {
    "publisher": ALWAYS | REGISTRY | RUNNING | {"Agents", "Access requests"},
    "approver": ALWAYS | EVIDENCE | {"Approvals"},
    "policy owner": ALWAYS | {"Policy"},
    "auditor": ALWAYS | REGISTRY | EVIDENCE | {"Policy", "Seals"},
    "operator": ALWAYS | REGISTRY | EVIDENCE | RUNNING | {"Agents", "Secrets", "Users", "Groups", "Notices"},
}
NAMED = set().union(*PAGES.values())
VERBS = {"publisher": "publish", "approver": "approve"}


def sidebar(page: str) -> set[str]:
    from config.sidebar import _GROUPS, _link

    links = set(re.findall(r'href="([^"?#]+)"', page.partition("<main")[0]))
    return {name for _, pages in _GROUPS for name, _, address, _ in pages if _link(address) in links}


@pytest.mark.parametrize("role", PAGES)
def test_a_role_sees_its_work_in_the_sidebar_and_nothing_else(
    role: str, person: Callable[..., User], tool: Tool, seen_by: Callable[..., str]
) -> None:
    one = person("one", role)
    if role in VERBS:
        assign_perm(f"registry.{VERBS[role]}_toolkit", one, tool.version.toolkit)
    assert sidebar(seen_by(one)) & NAMED == PAGES[role]


def test_a_superuser_sees_every_page(tool: Tool, seen_by: Callable[..., str]) -> None:
    from config.sidebar import _GROUPS

    everything = {name for _, pages in _GROUPS for name, *_ in pages}
    assert sidebar(seen_by(User.objects.create_superuser("root"))) == everything


def test_who_has_no_role_sees_home_and_the_reference(
    person: Callable[..., User], tool: Tool, seen_by: Callable[..., str]
) -> None:
    assert sidebar(seen_by(person("sol"))) == ALWAYS


@pytest.mark.parametrize(
    ("role", "shown", "hidden"),
    [
        ("publisher", ("Open breakers", "Access requests", "Calls by outcome"), ("How long calls wait",)),
        ("approver", ("Approvals", "How long calls wait"), ("Calls by outcome", "Open breakers")),
        ("policy owner", (), ("Calls by outcome", "Open breakers", "How long calls wait", "Calculator")),
        (
            "auditor",
            ("Calls by outcome", "Busiest tools", "How long calls wait"),
            ("Open breakers", "Approvals</span>"),
        ),
        ("operator", ("Open breakers", "Calls by outcome"), ("Versions to review", "Approvals</span>")),
    ],
)
def test_a_role_sees_its_work_at_home(
    role: str,
    shown: tuple[str, ...],
    hidden: tuple[str, ...],
    person: Callable[..., User],
    call: MakeCall,
    tool: Tool,
    seen_by: Callable[..., str],
) -> None:
    call()
    one = person("one", role)
    if role in VERBS:
        assign_perm(f"registry.{VERBS[role]}_toolkit", one, tool.version.toolkit)
    page = seen_by(one).partition("<main")[2]
    assert [text for text in shown if text not in page] == []
    assert [text for text in hidden if text in page] == []


def test_the_groups_are_there_from_the_start_with_permissions_that_exist(db: None) -> None:
    for name, labels in roles.ROLES.items():
        held = Group.objects.get(name=name).permissions.values_list("content_type__app_label", "codename")
        assert {f"{app}.{codename}" for app, codename in held} == set(labels)


def test_what_an_operator_changed_in_a_group_stays(db: None) -> None:
    group = Group.objects.get(name="auditor")
    group.permissions.clear()
    Group.objects.get(name="approver").delete()
    roles.ensure()
    assert group.permissions.count() == 0
    assert Group.objects.filter(name="approver").count() == 1
    roles.ensure()
    assert Group.objects.filter(name__in=roles.ROLES).count() == len(roles.ROLES)
