"""Outside workers in the web admin: seen by who may see what they serve, closed by who may publish it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from tests.sessions.conftest import Ask
from tests.sessions.worker import Worker, state_of

if TYPE_CHECKING:
    from registry.models import ToolkitVersion

pytestmark = pytest.mark.django_db
PAGE = "/admin/execution/session/"


def person(name: str, version: ToolkitVersion, *verbs: str) -> Client:
    from django.contrib.auth.models import User

    user = User.objects.create_user(name, is_staff=True)
    for verb in verbs:
        assign_perm(f"registry.{verb}_toolkit", user, version.toolkit)
    client = Client()
    client.force_login(user)
    return client


def test_a_session_is_shown_to_who_may_see_its_toolkit_and_closed_by_who_may_publish_it(
    worker: Worker, ask: Ask, warehouse: ToolkitVersion
) -> None:
    call = ask()
    worker.beat(call)
    stranger = person("stranger", warehouse)
    viewer, publisher = person("viewer", warehouse, "view"), person("publisher", warehouse, "publish")
    assert worker.session not in stranger.get(PAGE).content.decode()
    page = viewer.get(PAGE).content.decode()
    assert all(text in page for text in (worker.session, "picker", "Warehouse"))
    close = {"action": "close", "_selected_action": [worker.session]}
    viewer.post(PAGE, close)
    assert worker.beat(call) == 200
    publisher.post(PAGE, close)
    assert (worker.beat(call), state_of(call)) == (404, "queued")


def test_the_timeline_names_the_worker(worker: Worker, ask: Ask, warehouse: ToolkitVersion) -> None:
    call = ask()
    worker.beat(call)
    page = person("auditor", warehouse, "view", "audit").get(reverse("subject-call", args=[call.pk]))
    assert "Agent picker took attempt 1, as an outside worker." in page.content.decode()
