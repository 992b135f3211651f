"""An agent sees what it may view or call; the answer is remembered until something changes."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from guardian.shortcuts import assign_perm, remove_perm

from policy.agents import NewAgent, create
from policy.authentication import authenticate
from policy.caller import Caller
from policy.visibility import callable_toolkits, groups_of, visible_toolkits
from registry.models import Toolkit


def caller(made: NewAgent) -> Caller:
    return authenticate({"OXP-API-Key": made.key})


def test_an_agent_sees_what_it_may_call_or_view_and_nothing_else(
    made: NewAgent, toolkit: Toolkit, other_toolkit: Toolkit
) -> None:
    hidden = Toolkit.objects.create(name="Hidden")
    assign_perm("registry.view_toolkit", made.agent.user, other_toolkit)
    assert callable_toolkits(caller(made)) == {toolkit.pk}
    assert visible_toolkits(caller(made)) == {toolkit.pk, other_toolkit.pk}
    assert hidden.pk not in visible_toolkits(caller(made))


def test_a_permission_given_or_taken_counts_at_once(made: NewAgent, toolkit: Toolkit, other_toolkit: Toolkit) -> None:
    who = caller(made)
    assert callable_toolkits(who) == {toolkit.pk}
    assign_perm("registry.call_toolkit", made.agent.user, other_toolkit)
    assert callable_toolkits(who) == {toolkit.pk, other_toolkit.pk}
    remove_perm("registry.call_toolkit", made.agent.user, toolkit)
    assert callable_toolkits(who) == {other_toolkit.pk}


def test_a_permission_of_a_group_counts(made: NewAgent, toolkit: Toolkit, other_toolkit: Toolkit) -> None:
    who, group = caller(made), Group.objects.create(name="bots")
    assign_perm("registry.call_toolkit", group, other_toolkit)
    assert callable_toolkits(who) == {toolkit.pk}
    made.agent.user.groups.add(group)
    assert callable_toolkits(who) == {toolkit.pk, other_toolkit.pk}
    made.agent.user.groups.remove(group)
    assert callable_toolkits(who) == {toolkit.pk}


def test_the_permission_to_call_all_counts_also_for_later_toolkits(toolkit: Toolkit) -> None:
    who = caller(create("all", actor="shell", call_all=True))
    assert callable_toolkits(who) == {toolkit.pk}
    later = Toolkit.objects.create(name="Later")
    assert later.pk in callable_toolkits(who)
    User.objects.get(username="agent:all").user_permissions.remove(Permission.objects.get(codename="call_toolkit"))
    assert callable_toolkits(who) == frozenset()


def test_the_answer_costs_one_small_read_until_something_changes(
    made: NewAgent, django_assert_num_queries: Callable[..., Any]
) -> None:
    who = caller(made)
    callable_toolkits(who)
    with django_assert_num_queries(0):  # the glance at the revision does not count
        callable_toolkits(who)


def test_an_agents_groups_are_known_by_name_and_at_once(
    made: NewAgent, django_assert_num_queries: Callable[..., Any]
) -> None:
    who, group = caller(made), Group.objects.create(name="bots")
    assert groups_of(who) == frozenset()
    made.agent.user.groups.add(group)
    assert groups_of(who) == {"bots"}
    group.name = "robots"
    group.save()
    assert groups_of(who) == {"robots"}
    with django_assert_num_queries(0):
        groups_of(who)
    group.delete()
    assert groups_of(who) == frozenset()
