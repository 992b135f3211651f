"""Callbacks in the web admin: what waits for an answer is shown, what proves an answer is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.test import Client
from guardian.shortcuts import assign_perm

from tests.execution.callbackkit import bearer, let_time_pass, look, publish, push, robot, start, tool
from tests.services.webhookserver import WebhookTool

if TYPE_CHECKING:
    from policy.agents import NewAgent

__all__ = ["publish", "robot", "tool"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]

PAGE = "/admin/execution/callback/"


def page_of(name: str, *, is_auditor: bool) -> str:
    from registry.models import Toolkit

    user, _ = User.objects.get_or_create(username=name, is_staff=True)
    if is_auditor:
        assign_perm("registry.audit_toolkit", user, Toolkit.objects.get(name="Later"))
    client = Client()
    client.force_login(user)
    answer = client.get(PAGE)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_wait_is_shown_to_who_may_see_its_call_and_its_token_to_nobody(
    client: Client, tool: WebhookTool, robot: NewAgent
) -> None:
    start(client, robot)
    look()
    page = page_of("auditor", is_auditor=True)
    assert "Later.Thing@1.0.0" in page
    assert ">Open<" in page.replace("\n", "").replace(" ", "")
    assert tool.token not in page
    assert tool.endpoint not in page
    assert "Later.Thing" not in page_of("stranger", is_auditor=False)


def test_what_became_of_a_wait_is_shown(client: Client, tool: WebhookTool, robot: NewAgent) -> None:
    from execution.models import Callback
    from execution.pipeline import answering

    start(client, robot)
    push(client, {"status": "ok", "output": {"n": 1}}, bearer(tool.token))
    assert "Answered" in page_of("auditor", is_auditor=True)
    start(client, robot, "job-2")
    let_time_pass()
    answering.look(Callback.objects.latest("pk").pk)
    assert "Expired" in page_of("auditor", is_auditor=True)


def test_a_wait_is_nobodys_to_end_by_hand(client: Client, tool: WebhookTool, robot: NewAgent) -> None:
    from execution.models import Callback

    start(client, robot)
    row, root = Callback.objects.get(), Client()
    root.force_login(User.objects.create_superuser("root"))
    for address in ("add/", f"{row.pk}/delete/"):
        assert root.post(f"{PAGE}{address}", {"post": "yes"}).status_code == 403
    assert root.get(f"{PAGE}{row.pk}/change/").headers["Location"] == f"/calls/{row.call_id}/"
    assert root.get(f"{PAGE}999999/change/").status_code == 404
    assert Callback.objects.get().state == "open"
