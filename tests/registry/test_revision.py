"""The revision moves with every change that resolution or policy could notice, and with nothing else."""

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from guardian.shortcuts import assign_perm, remove_perm

from registry import revision
from registry.models import Tool, Toolkit
from registry.publishing import deprecate
from tests.factories.registry import bare_tool, bare_version, draft, person, published

pytestmark = pytest.mark.django_db


def moves(change: Callable[[], Any]) -> bool:
    before = revision.current()
    change()
    return revision.current() != before


def test_a_change_of_the_registry_is_a_new_revision() -> None:
    toolkit = Toolkit.objects.create(name="Calculator")
    version = bare_version(toolkit)
    assert moves(lambda: Toolkit.objects.create(name="Other"))
    assert moves(lambda: bare_tool(version))
    assert moves(lambda: Tool.objects.update(title="Sum"))
    assert moves(lambda: Tool.objects.all().delete())
    released = published("Third")
    assert moves(lambda: deprecate(released, by=None))


def test_a_change_of_permissions_is_a_new_revision() -> None:
    user, group, toolkit = person(), Group.objects.create(name="g"), draft().toolkit
    permission = Permission.objects.get(codename="call_toolkit")
    assert moves(lambda: assign_perm("registry.call_toolkit", user, toolkit))
    assert moves(lambda: remove_perm("registry.call_toolkit", user, toolkit))
    assert moves(lambda: assign_perm("registry.call_toolkit", group, toolkit))
    assert moves(lambda: user.groups.add(group))
    assert moves(lambda: user.user_permissions.add(permission))
    assert moves(lambda: group.permissions.add(permission))


def test_only_what_matters_about_a_user_is_a_new_revision() -> None:
    user = person()
    rows = User.objects.filter(pk=user.pk)
    assert moves(lambda: rows.update(is_active=False))
    assert moves(lambda: rows.update(is_superuser=True))
    assert not moves(lambda: rows.update(last_name="Lovelace"))
    assert not moves(lambda: rows.update(is_active=False))


def test_a_number_never_comes_back_after_a_rollback() -> None:
    seen = {revision.current()}
    for _ in range(3):
        with transaction.atomic():
            Toolkit.objects.create(name="Calculator")
            assert revision.current() not in seen
            seen.add(revision.current())
            transaction.set_rollback(True)
        assert revision.current() in seen


def test_within_pinned_the_revision_is_read_once() -> None:
    with revision.pinned():
        before = revision.current()
        Toolkit.objects.create(name="Calculator")
        assert revision.current() == before
    assert revision.current() != before


def test_what_one_thread_sees_in_its_transaction_is_no_guess_for_another() -> None:
    """The other one would keep what it reads of the state before under the number of the state after."""
    guesses: list[bool] = []

    def guess() -> None:
        with revision.guessed() as is_guess:
            guesses.append(is_guess)

    with transaction.atomic():
        Toolkit.objects.create(name="Calculator")
        revision.current()
        guess()
        other = Thread(target=guess)
        other.start()
        other.join()
    assert guesses == [True, False]
