"""Access requests: a denied agent asks, a person who may gives or refuses, once, and everyone concerned is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from guardian.shortcuts import assign_perm
from rest_framework.test import APIClient

from audit.models import Event
from policy import accessrequests, agents
from policy.agents import NewAgent
from policy.models import AccessRequest, Notice
from registry import access
from registry.models import Toolkit

URL = "/api/access-requests/"


@pytest.fixture
def owner(toolkit: Toolkit) -> User:
    """Owns Calculator."""
    owner = User.objects.create_user("olga", email="olga@example.org", is_staff=True)
    Toolkit.objects.filter(pk=toolkit.pk).update(owner=owner)
    toolkit.refresh_from_db()
    return owner


@pytest.fixture
def asker(owner: User) -> User:
    """Answers for the agent that asks."""
    return User.objects.create_user("anna", email="anna@example.org", is_staff=True)


@pytest.fixture
def bot(toolkit: Toolkit, asker: User) -> NewAgent:
    """An agent that may see Calculator but not call it."""
    made = agents.create("bot", actor="shell", owner="anna")
    assign_perm("registry.view_toolkit", made.agent.user, toolkit)
    return made


@pytest.fixture
def publisher(toolkit: Toolkit) -> User:
    publisher = User.objects.create_user("paul", email="paul@example.org", is_staff=True)
    assign_perm("registry.publish_toolkit", publisher, toolkit)
    return publisher


def as_agent(made: NewAgent) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.key}")
    return client


def as_person(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


def ask(made: NewAgent, toolkit: str = "Calculator", **more: Any) -> Any:
    return as_agent(made).post(URL, {"toolkit": toolkit, "reason": "to add numbers", **more}, "json")


@pytest.fixture
def pending(bot: NewAgent) -> AccessRequest:
    assert ask(bot).status_code == 201
    return AccessRequest.objects.get()


# Asking


def test_an_agent_asks_for_itself_and_the_owner_is_told(bot: NewAgent, owner: User) -> None:
    call = uuid4()
    answer = ask(bot, "calculator", call=str(call))
    assert answer.status_code == 201
    told = answer.json()
    assert told["id"] == AccessRequest.objects.get().pk
    assert answer["Location"] == f"{URL}{told['id']}/"
    shown = {name: told[name] for name in ("agent", "toolkit", "permission", "state", "requested_by", "call")}
    assert shown == {
        "agent": "bot",
        "toolkit": "Calculator",
        "permission": "call",
        "state": "pending",
        "requested_by": "agent:bot",
        "call": str(call),
    }
    notice = Notice.objects.get()
    assert (notice.kind, notice.target) == ("access.requested", "olga@example.org")
    assert "to add numbers" not in str(notice.content)
    event = Event.objects.get(subject_kind="toolkit", subject_id="Calculator", event="access.requested")
    assert event.actor == "agent:bot"
    assert as_agent(bot).get(answer["Location"]).json() == told


def test_a_toolkit_that_the_agent_may_not_see_reads_like_one_that_is_not_there(
    bot: NewAgent, other_toolkit: Toolkit
) -> None:
    hidden, missing = ask(bot, "Mail"), ask(bot, "Nothing")
    assert (hidden.status_code, hidden.json()) == (404, missing.json())
    assert not AccessRequest.objects.exists()


def test_a_second_request_is_answered_with_the_first(bot: NewAgent, pending: AccessRequest) -> None:
    again = ask(bot, reason="please!")
    assert (again.status_code, again.json()["code"]) == (409, "already_pending")
    assert again.json()["details"] == {"request": pending.pk, "state": "pending"}
    assert AccessRequest.objects.count() == 1


def test_who_may_already_call_need_not_ask(made: NewAgent, owner: User) -> None:
    assert ask(made).json()["code"] == "already_permitted"
    everywhere = agents.create("everywhere", actor="shell", call_all=True)
    assert ask(everywhere).json()["code"] == "already_permitted"


def test_an_agent_has_at_most_twenty_pending_requests(bot: NewAgent, other_toolkit: Toolkit) -> None:
    for number in range(accessrequests.MAX_PENDING):
        toolkit = Toolkit.objects.create(name=f"T{number}")
        assign_perm("registry.view_toolkit", bot.agent.user, toolkit)
        assert ask(bot, toolkit.name).status_code == 201
    full = ask(bot)
    assert (full.status_code, full.json()["code"]) == (429, "rate_limited")
    other = agents.create("other", actor="shell")
    assign_perm("registry.view_toolkit", other.agent.user, Toolkit.objects.get(name="Calculator"))
    assert ask(other).status_code == 201


def test_a_person_asks_for_an_agent_that_is_theirs_to_see(bot: NewAgent, asker: User, owner: User) -> None:
    body = {"agent": "bot", "toolkit": "Calculator", "reason": "it adds"}
    assert as_person(asker).post(URL, body, "json").status_code == 404  # anna does not see the toolkit
    assign_perm("registry.view_toolkit", asker, Toolkit.objects.get())
    assert as_person(asker).post(URL, {**body, "agent": "nobody"}, "json").status_code == 422
    assert as_person(asker).post(URL, {"toolkit": "Calculator", "reason": "x"}, "json").status_code == 422
    assert as_person(owner).post(URL, body, "json").status_code == 422  # olga does not see the agent
    made = as_person(asker).post(URL, body, "json")
    assert (made.status_code, made.json()["requested_by"]) == (201, "user:anna")


@pytest.mark.parametrize(
    "body",
    [
        {"toolkit": "Calculator"},
        {"toolkit": "Calculator", "reason": "  "},
        {"toolkit": "Calculator", "reason": "x" * 2_001},
        {"toolkit": "Calculator", "reason": "x", "call": "not-a-uuid"},
        {"toolkit": "Calculator", "reason": "x", "agent": "demo"},
        {"toolkit": "Calculator", "reason": "x", "permission": "approve"},
        {"toolkit": "Calculator", "reason": "x", "state": "granted"},
        {"toolkit": "Calculator", "reason": "x", "decided_by": "olga"},
        {"toolkit": ["Calculator"], "reason": "x"},
        {"reason": "x"},
        [],
    ],
)
def test_a_body_that_makes_no_sense_is_refused(bot: NewAgent, made: NewAgent, body: Any) -> None:
    answer = as_agent(bot).post(URL, body, "json")
    assert answer.status_code == 422
    assert not AccessRequest.objects.exists()


def test_a_stranger_asks_nothing(bot: NewAgent) -> None:
    assert APIClient().post(URL, {"toolkit": "Calculator", "reason": "x"}, "json").status_code == 401


# Seeing


def test_each_sees_what_concerns_them(
    pending: AccessRequest, bot: NewAgent, made: NewAgent, owner: User, asker: User, publisher: User, person: User
) -> None:
    root = User.objects.create_superuser("root")
    general = User.objects.create_user("general")
    general.user_permissions.set(Permission.objects.filter(codename="publish_toolkit"))
    for user, count in ((owner, 1), (publisher, 1), (asker, 1), (root, 1), (person, 0), (general, 0)):
        answer = as_person(user).get(URL).json()
        assert answer["count"] == count, user
        assert as_person(user).get(f"{URL}{pending.pk}/").status_code == (200 if count else 404)
    assert as_agent(bot).get(URL).json()["count"] == 1
    assert as_agent(made).get(URL).json()["count"] == 0
    assert as_agent(made).get(f"{URL}{pending.pk}/").json() == as_agent(made).get(f"{URL}999999/").json()


def test_the_list_is_filtered_strictly(pending: AccessRequest, owner: User) -> None:
    client = as_person(owner)
    assert client.get(f"{URL}?state=pending&agent=bot&toolkit=calculator").json()["count"] == 1
    assert client.get(f"{URL}?state=granted").json()["count"] == 0
    assert client.get(f"{URL}?state=nonsense").status_code == 400
    assert client.get(f"{URL}?reason=x").status_code == 400


# Deciding


def test_the_owner_grants_and_the_agent_may_call(pending: AccessRequest, bot: NewAgent, owner: User) -> None:
    answer = as_person(owner).post(f"{URL}{pending.pk}/grant/", {"note": "welcome"}, "json")
    assert answer.status_code == 200
    told = answer.json()
    assert (told["state"], told["decided_by"], told["note"]) == ("granted", "olga", "welcome")
    assert told["decided_at"]
    assert access.may(User.objects.get(pk=bot.agent.user_id), "call", Toolkit.objects.get())
    events = Event.objects.filter(subject_kind="toolkit", actor="user:olga").order_by("id")
    assert list(events.values_list("event", flat=True)) == ["permission.given", "access.granted"]
    notice = Notice.objects.get(kind="access.granted")
    assert notice.target == "anna@example.org"
    assert notice.content["path"] == f"/access-requests/{pending.pk}/"


def test_a_refusal_says_why_and_gives_nothing(pending: AccessRequest, bot: NewAgent, publisher: User) -> None:
    client = as_person(publisher)
    assert client.post(f"{URL}{pending.pk}/refuse/", {}, "json").status_code == 422
    assert client.post(f"{URL}{pending.pk}/refuse/", {"note": " "}, "json").status_code == 422
    answer = client.post(f"{URL}{pending.pk}/refuse/", {"note": "not for bots"}, "json")
    assert (answer.status_code, answer.json()["state"]) == (200, "refused")
    assert not access.may(User.objects.get(pk=bot.agent.user_id), "call", Toolkit.objects.get())
    assert Notice.objects.filter(kind="access.refused", target="anna@example.org").exists()
    assert ask(bot).status_code == 201  # it may ask once more


def test_what_is_decided_stays_decided_and_the_second_is_told_by_whom(
    pending: AccessRequest, owner: User, publisher: User
) -> None:
    assert as_person(owner).post(f"{URL}{pending.pk}/grant/", {}, "json").status_code == 200
    for step in ("grant", "refuse"):
        late = as_person(publisher).post(f"{URL}{pending.pk}/{step}/", {"note": "no"}, "json")
        assert (late.status_code, late.json()["code"]) == (409, "already_decided")
        assert "olga has already granted" in late.json()["message"]
    assert Event.objects.filter(event="permission.given", actor="user:olga").count() == 1


def test_who_may_not_give_it_decides_nothing(pending: AccessRequest, bot: NewAgent, asker: User, person: User) -> None:
    for step in ("grant", "refuse"):
        assert as_person(asker).post(f"{URL}{pending.pk}/{step}/", {"note": "x"}, "json").status_code == 403
        assert as_person(person).post(f"{URL}{pending.pk}/{step}/", {"note": "x"}, "json").status_code == 404
        assert as_agent(bot).post(f"{URL}{pending.pk}/{step}/", {"note": "x"}, "json").status_code == 403
        assert as_person(asker).get(f"{URL}{pending.pk}/{step}/").status_code == 405
    pending.refresh_from_db()
    assert pending.state == "pending"


def test_the_owner_of_both_toolkit_and_agent_does_not_grant_but_may_refuse(
    pending: AccessRequest, bot: NewAgent, owner: User
) -> None:
    bot.agent.owner = owner
    bot.agent.save(update_fields=["owner"])
    refused = as_person(owner).post(f"{URL}{pending.pk}/grant/", {}, "json")
    assert refused.status_code == 403
    assert "an agent of their own" in refused.json()["message"]
    assert as_person(owner).post(f"{URL}{pending.pk}/refuse/", {"note": "no"}, "json").status_code == 200


def test_where_nobody_near_could_grant_it_the_superusers_are_told(bot: NewAgent, owner: User) -> None:
    User.objects.create_superuser("root", email="root@example.org")
    bot.agent.owner = owner
    bot.agent.save(update_fields=["owner"])
    assert ask(bot).status_code == 201
    assert Notice.objects.get().target == "root@example.org"


def test_a_superuser_grants_to_his_own_agent_and_the_trail_says_so(pending: AccessRequest, bot: NewAgent) -> None:
    root = User.objects.create_superuser("root")
    bot.agent.owner = root
    bot.agent.save(update_fields=["owner"])
    assert as_person(root).post(f"{URL}{pending.pk}/grant/", {}, "json").status_code == 200
    assert "to_oneself" in str(Event.objects.get(event="permission.given", actor="user:root").detail)


@pytest.mark.parametrize("body", [{"state": "granted"}, {"decided_by": "olga"}, {"note": ["x"]}, {"note": "x" * 2_001}])
def test_a_decision_says_nothing_but_a_note(pending: AccessRequest, owner: User, body: Any) -> None:
    assert as_person(owner).post(f"{URL}{pending.pk}/grant/", body, "json").status_code == 422
    assert AccessRequest.objects.get().state == "pending"


def test_a_session_without_the_token_of_its_form_decides_nothing(pending: AccessRequest, owner: User) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(owner)
    assert client.post(f"{URL}{pending.pk}/grant/", {}, "json").status_code == 403
    assert AccessRequest.objects.get().state == "pending"


@pytest.mark.django_db(transaction=True)
def test_of_a_grant_and_a_refusal_at_once_one_counts(bot: NewAgent, owner: User, publisher: User) -> None:
    for _ in range(10):
        asked = accessrequests.ask(bot.agent, Toolkit.objects.get(), reason="again", by=bot.agent.user)
        outcomes: list[str] = []
        start = threading.Barrier(2)

        def decide(
            step: Callable[..., AccessRequest],
            by: User,
            asked: AccessRequest = asked,
            outcomes: list[str] = outcomes,
            start: threading.Barrier = start,
        ) -> None:
            start.wait()
            try:
                outcomes.append(step(asked, by=by, note="now").state)
            except accessrequests.AccessRequestError as error:
                outcomes.append(error.code)
            finally:
                connection.close()

        both = [
            threading.Thread(target=decide, args=(accessrequests.grant, owner)),
            threading.Thread(target=decide, args=(accessrequests.refuse, publisher)),
        ]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join(timeout=30)
        asked.refresh_from_db()
        assert sorted(outcomes) == sorted(["already_decided", asked.state])
        may_call = access.may(User.objects.get(pk=bot.agent.user_id), "call", Toolkit.objects.get())
        assert may_call == (asked.state == "granted")
        if may_call:
            from policy import permissions

            permissions.take(Toolkit.objects.get(), "call", bot.agent, by=owner)


# In the portal


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_the_owner_reads_and_grants_in_the_portal(pending: AccessRequest, bot: NewAgent, owner: User) -> None:
    AccessRequest.objects.update(reason="<b>please</b>\u202e")
    page, client = f"/admin/policy/accessrequest/{pending.pk}/", browser(owner)
    assert "bot" in client.get("/admin/policy/accessrequest/").content.decode()
    shown = client.get(f"{page}change/").content.decode()
    assert "&lt;b&gt;please&lt;/b&gt;⟨U+202E⟩" in shown
    assert f"{page}grant/" in shown
    assert client.get(f"{page}grant/").status_code == 200
    assert AccessRequest.objects.get().state == "pending"  # a GET never decides
    assert client.post(f"{page}grant/", {"note": ""}).status_code == 302
    assert AccessRequest.objects.get().state == "granted"
    settled = client.get(f"{page}change/").content.decode()
    assert f"{page}grant/" not in settled
    assert "olga" in settled
    late = client.post(f"{page}refuse/", {"note": "too late"}, follow=True)
    assert "olga has already granted" in late.content.decode()


def test_a_refusal_in_the_portal_says_why(pending: AccessRequest, owner: User) -> None:
    page, client = f"/admin/policy/accessrequest/{pending.pk}/refuse/", browser(owner)
    assert client.post(page, {"note": ""}).status_code == 200
    assert AccessRequest.objects.get().state == "pending"
    assert client.post(page, {"note": "not now"}).status_code == 302
    assert AccessRequest.objects.get().note == "not now"


def test_the_agents_owner_reads_it_in_the_portal_and_decides_nothing(pending: AccessRequest, asker: User) -> None:
    page, client = f"/admin/policy/accessrequest/{pending.pk}/", browser(asker)
    shown = client.get(f"{page}change/").content.decode()
    assert "grant/" not in shown
    assert "refuse/" not in shown
    for step in ("grant", "refuse"):
        assert client.get(f"{page}{step}/").status_code == 403
        assert client.post(f"{page}{step}/", {"note": "x"}).status_code == 403
    assert AccessRequest.objects.get().state == "pending"


def test_nobody_else_finds_it_in_the_portal(pending: AccessRequest) -> None:
    client = browser(User.objects.create_user("else", is_staff=True))
    assert client.get(f"/admin/policy/accessrequest/{pending.pk}/change/").status_code == 404
    assert client.post(f"/admin/policy/accessrequest/{pending.pk}/grant/").status_code == 404
    assert client.post("/admin/policy/accessrequest/add/", {"reason": "x"}).status_code == 403
