"""Try it: a real call through an agent of the person's own; judged, recorded once, and refused as the doors refuse."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client
from guardian.shortcuts import assign_perm

from audit.models import Event
from execution.models import Breaker, Call
from execution.portal import tryit
from policy import agents, approvals, permissions, policyfile, revisions
from policy.authentication import NotAuthenticated, authenticate
from policy.models import AccessRequest, Agent, Approval, Credential
from registry.models import Toolkit
from tests.factories.registry import numbers, published

pytestmark = pytest.mark.django_db

PAGE = "/catalogue/Calculator/Add/"


@pytest.fixture(autouse=True)
def _nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker runs here: a call is queued, and that is what the page tells."""
    monkeypatch.setattr(tryit, "WAIT", 0.0)


@pytest.fixture
def toolkit(db: None) -> Toolkit:
    schema = numbers("a", "b", note={"type": "string", "minLength": 3})
    return published("Calculator", "1.0.0", {"name": "Add", "input": schema}).toolkit


@pytest.fixture
def ana(toolkit: Toolkit) -> User:
    """Somebody who sees the toolkit, with an agent of her own that may call it."""
    ana = User.objects.create_user("ana", "ana@placet.invalid", is_staff=True)
    assign_perm("registry.view_toolkit", ana, toolkit)
    permissions.put(toolkit, "call", agents.for_person(ana), actor="shell")
    return ana


@pytest.fixture
def sit() -> Callable[[User], Client]:
    def sit_down(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return sit_down


def form_on(page: str) -> dict[str, str]:
    """The hidden values, and the names of the fields by their labels."""
    part = page.partition('id="try"')[2].partition("</section>")[0]
    hidden = dict(re.findall(r'<input type="hidden" name="(version|call_id)" value="([^"]*)"', part))
    labels = dict(re.findall(r'<label for="try-(p-[\d-]+)">(\w+)', part))
    return {**hidden, "mode": "form", **{label: name for name, label in labels.items()}}


def sent(
    client: Client, *, address: str = PAGE, quietly: bool = True, brought: dict[str, str] | None = None, **typed: str
) -> Any:
    """Fills the form of the page in and sends it, by its script unless `quietly` is False."""
    form = form_on(client.get(address).content.decode())
    data = {"agent": "me", "version": "1.0.0", "call_id": form["call_id"], "mode": typed.pop("mode", "form")}
    for label, value in (typed | (brought or {})).items():
        data[form.get(label, label)] = value
    return client.post(f"{address}try/", data, headers={"HX-Request": "true"} if quietly else {})


def test_a_form_becomes_a_judged_and_recorded_call_of_ones_own(ana: User, sit: Callable[[User], Client]) -> None:
    answer = sent(sit(ana), a="2", b="3.5")
    page = answer.content.decode()
    call = Call.objects.select_related("agent").get()
    assert (call.agent.person, call.door, call.state, call.tool_ref) == (
        ana,
        "portal",
        "queued",
        "Calculator.Add@1.0.0",
    )
    assert json.loads(call.input) == {"a": 2, "b": 3.5}
    assert call.user_id == "ana"
    received = Event.objects.get(subject_kind="call", subject_id=str(call.pk), event="call.received")
    assert (received.actor, json.loads(received.detail)["credential"]) == ("agent:person-ana", "session:ana")
    assert "In the queue" in page
    assert f"/calls/{call.pk}/" in page
    assert 'value="2"' in page  # the form keeps what was typed
    assert form_on(page)["call_id"] != call.call_id  # and the next one is another call


def test_the_same_form_sent_twice_is_one_call(ana: User, sit: Callable[[User], Client]) -> None:
    client = sit(ana)
    form = form_on(client.get(PAGE).content.decode())
    data = {"agent": "me", "call_id": form["call_id"], "mode": "form", form["a"]: "1", form["b"]: "2"}
    pages = [client.post(f"{PAGE}try/", data, headers={"HX-Request": "true"}).content.decode() for _ in range(2)]
    call = Call.objects.get()
    assert all(f"/calls/{call.pk}/" in page for page in pages)
    other = client.post(f"{PAGE}try/", data | {form["b"]: "3"}, headers={"HX-Request": "true"}).content.decode()
    assert "This form was sent before, with other values" in other
    assert Call.objects.count() == 1


def test_without_scripts_the_answer_has_an_address(ana: User, sit: Callable[[User], Client]) -> None:
    client = sit(ana)
    answer = sent(client, a="1", b="2", quietly=False)
    call = Call.objects.get()
    assert answer.headers["Location"] == f"{PAGE}?version=1.0.0&call={call.pk}#try"
    assert "In the queue" in client.get(answer.headers["Location"]).content.decode()
    bad = sent(client, a="1", b="x", quietly=False)
    assert bad.status_code == 422
    assert "Must be a number" in bad.content.decode()
    for nonsense in ("x", "00000000-0000-0000-0000-000000000000"):
        assert "try-panel" not in client.get(f"{PAGE}?call={nonsense}").content.decode()


def test_bad_values_are_named_at_their_fields_and_nothing_is_called(ana: User, sit: Callable[[User], Client]) -> None:
    client = sit(ana)
    page = sent(client, a="one", note="xy").content.decode()
    errors = re.findall(r'id="try-(p-\d)-error">([^<]+)<', page)
    assert [name for name, _ in errors] == ["p-0", "p-1"]
    page = sent(client, a="1", b="2", note="xy").content.decode()  # what only the schema knows
    assert re.findall(r'id="try-(p-\d)-error">([^<]+)<', page) == [("p-2", "Must have at least 3 characters")]
    assert 'value="xy"' in page
    for text, why in (
        ("{", "is not JSON"),
        ("[]", "is a JSON object"),
        ('{"a": 1}', "/b: "),
        ('{"a":1,"b":2,"z":3}', "z"),
    ):
        page = sent(client, mode="json", json=text).content.decode()
        assert why in unescape(page.partition('id="try-errors"')[2].partition("</div>")[0]), text
    assert not Call.objects.exists()


def test_the_whole_input_can_be_written_as_json(ana: User, sit: Callable[[User], Client]) -> None:
    sent(sit(ana), mode="json", json='{"a": 1, "b": 2}', a="ignored")
    assert json.loads(Call.objects.get().input) == {"a": 1, "b": 2}


def test_whoever_has_no_agent_that_may_call_is_told_and_asks(
    toolkit: Toolkit, person: Callable[..., User], sit: Callable[[User], Client]
) -> None:
    pia = person("pia")
    assign_perm("registry.publish_toolkit", pia, toolkit)  # who publishes gives others what an agent needs, not herself
    client = sit(pia)
    page = client.get(PAGE).content.decode()
    assert "None of your agents may call Calculator yet." in page
    assert "Run it" not in page
    assert not Agent.objects.exists()  # to look makes nothing
    assert client.post(f"{PAGE}access/", {"agent": "me", "give": "1"}).status_code == 403
    assert not Agent.objects.exists()  # nor does what was refused
    client.post(f"{PAGE}access/", {"agent": "me", "reason": " "})
    assert not AccessRequest.objects.exists()
    client.post(f"{PAGE}access/", {"agent": "me", "reason": "to see it work"})
    asked = AccessRequest.objects.get()
    assert (asked.agent.name, asked.agent.owner, asked.requested_by) == ("person-pia", pia, "user:pia")
    page = client.get(PAGE).content.decode()
    assert "has asked to call Calculator" in page
    refused = client.post(f"{PAGE}try/", {"agent": "me", "mode": "json", "json": '{"a":1,"b":2}'})
    assert "Choose an agent of yours that may call Calculator." in refused.content.decode()
    assert not Call.objects.exists()


def test_a_superuser_lets_an_agent_in_with_one_click(toolkit: Toolkit, sit: Callable[[User], Client]) -> None:
    root = User.objects.create_superuser("root")
    client = sit(root)
    assert "You may give the permission." in client.get(PAGE).content.decode()
    answer = client.post(f"{PAGE}access/", {"agent": "me", "give": "1"}, follow=True)
    assert "person-root may now call Calculator." in answer.content.decode()
    given = Event.objects.get(event="permission.given")
    assert json.loads(given.detail) == {"holder": "agent:person-root", "permission": "call", "to_oneself": True}
    sent(client, a="1", b="2")
    assert Call.objects.get().agent.person == root


def test_people_act_through_agents_that_they_own_and_no_others(
    ana: User, toolkit: Toolkit, sit: Callable[[User], Client]
) -> None:
    agents.create("mine", actor="shell", owner="ana", call=["Calculator"])
    agents.create("lazy", actor="shell", owner="ana")
    agents.create("stranger", actor="shell", call=["Calculator"])
    client = sit(ana)
    page = client.get(PAGE).content.decode()
    assert re.findall(r'<option value="(\w+)"', page.partition('id="try-as"')[2].partition("</select>")[0]) == [
        "me",
        "mine",
    ]
    assert "stranger" not in page.partition('id="try"')[2].partition("</section>")[0]
    assert "Choose an agent of yours" in sent(client, a="1", b="2", agent="stranger").content.decode()
    assert client.post(f"{PAGE}access/", {"agent": "stranger", "reason": "please"}).status_code == 404
    sent(client, a="1", b="2", agent="mine")
    assert Call.objects.get().agent.name == "mine"


def test_what_waits_for_a_person_links_to_the_question_and_nobody_approves_their_own(
    person: Callable[..., User], sit: Callable[[User], Client]
) -> None:
    toolkit = published("Bank", "1.0.0", {"name": "Pay", "risk": "high", "input": numbers("amount")}).toolkit
    ben = person("ben")
    for verb in ("view", "approve"):
        assign_perm(f"registry.{verb}_toolkit", ben, toolkit)
    permissions.put(toolkit, "call", agents.for_person(ben), actor="shell")
    client = sit(ben)
    page = sent(client, address="/catalogue/Bank/Pay/", amount="5").content.decode()
    approval = Approval.objects.get()
    assert "A person must agree first" in page
    assert f"/approvals/{approval.pk}/" in page
    refusal = approvals.obstacle(approval, ben)
    assert refusal is not None
    assert refusal.code == "self_approval"
    call = Call.objects.get()
    poll = f"/catalogue/tried/{call.pk}/"
    assert client.get(f"{poll}?seen=awaiting_approval").status_code == 204
    assert "A person must agree first" in client.get(f"{poll}?seen=queued").content.decode()
    assert sit(person("sol")).get(poll).status_code == 404
    assert Client().get(poll).headers["HX-Refresh"] == "true"


def test_a_denial_and_a_turning_away_say_why(ana: User, toolkit: Toolkit, sit: Callable[[User], Client]) -> None:
    rule = {"name": "no <sums>", "tools": ["Calculator.*"], "when": "input.a > 5.0", "effect": "deny"}
    document = {"apiVersion": "placet.dev/v1", "kind": "Policy", "spec": {"rules": [rule]}}
    rules = policyfile.read(json.dumps(document))
    revisions.activate(revisions.new_draft(by=None, rules=rules), by=None)
    client = sit(ana)
    page = sent(client, a="9", b="2").content.decode()
    assert "Denied" in page
    assert "no &lt;sums&gt;" in page
    assert Call.objects.get().state == "denied"
    tool, now = toolkit.versions.get().tools.get(), datetime.now(UTC)
    Breaker.objects.create(tool=tool, state="open", failures=9, opened_at=now, retry_at=now + timedelta(hours=1))
    page = sent(client, a="1", b="2").content.decode()
    assert "Turned away at the door" in page
    assert Call.objects.count() == 1


def test_how_a_call_ended_is_shown_as_text(ana: User, sit: Callable[[User], Client]) -> None:
    client = sit(ana)
    sent(client, a="1", b="2")
    call = Call.objects.get()
    nasty = "<script>alert(1)</script>\u202e"
    ends = {
        "succeeded": ("It worked", {"result": json.dumps({"x": nasty})}),
        "failed": ("The tool failed", {"error": json.dumps({"code": "execution_failed", "message": nasty})}),
        "denied": ("Denied", {"error": json.dumps({"code": "permission_denied", "message": nasty})}),
        "unknown": ("Nobody knows whether it ran", {}),
    }
    for state, (headline, more) in ends.items():
        for name, value in {"state": state, "result": "", "error": "", **more}.items():
            setattr(call, name, value)
        page = render_to_string("portal/try_panel.html", {"panel": tryit.panel_of(call)})
        assert headline in page
        assert "<script" not in page
        assert "\u202e" not in page
        assert "hx-get" not in page  # it has ended: nobody asks again


def test_tokens_and_secrets_that_the_caller_brings_are_asked_for_and_never_shown_again(
    ana: User, sit: Callable[[User], Client]
) -> None:
    needs = {"authorization": [{"id": "google"}], "secrets": [{"id": "KEY"}]}
    toolkit = published("Post", "1.0.0", {"name": "Send", "input": numbers("a"), "requirements": needs}).toolkit
    assign_perm("registry.view_toolkit", ana, toolkit)
    permissions.put(toolkit, "call", agents.for_person(ana), actor="shell")
    client = sit(ana)
    address = "/catalogue/Post/Send/"
    page = sent(client, address=address, a="1").content.decode()
    assert "Token for google" in page
    assert not Call.objects.exists()
    page = sent(client, address=address, a="x", brought={"a-0": "tok-123", "s-0": "sec-456"}).content.decode()
    assert "tok-123" not in page
    page = sent(client, address=address, a="1", brought={"a-0": "tok-123", "s-0": "sec-456"}).content.decode()
    call = Call.objects.get()
    assert call.state == "queued"
    assert call.sealed is not None
    assert "sec-456" not in page + call.input


def test_an_agent_of_a_person_has_no_keys_and_is_made_once(
    ana: User, sit: Callable[[User], Client], settings: Any
) -> None:
    own = agents.for_person(ana)
    assert agents.for_person(ana) == own
    assert (own.owner, own.user.has_usable_password(), own.sealed_jwt_secret) == (ana, False, None)
    with pytest.raises(agents.AgentError, match="never has a key"):
        agents.new_key(own, actor="shell")
    assert not Credential.objects.exists()
    agents.create("person-bob.x", actor="shell")  # somebody took the name
    bob = User.objects.create_user("bob@x")
    taken = agents.create(agents.name_for(bob), actor="shell").agent
    assert agents.for_person(bob) != taken
    with pytest.raises(agents.AgentError, match="only people"):
        agents.for_person(own.user)
    settings.PLACET_ANONYMOUS_AGENT = own.name  # nor does anybody else come as her
    with pytest.raises(NotAuthenticated):
        authenticate({})
    page = sit(ana).get(f"/admin/policy/agent/{own.pk}/change/").content.decode()
    assert "It has no key and never gets one." in page
    assert "Make a key" not in page
    assert "A person at the portal" in sit(ana).get("/admin/policy/agent/").content.decode()


def test_only_people_try_and_only_by_a_form_of_ours(ana: User, toolkit: Toolkit) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ana)
    assert strict.post(f"{PAGE}try/", {"agent": "me"}).status_code == 403
    assert strict.get(f"{PAGE}try/").status_code == 405
    program = Client()
    program.force_login(agents.create("bot", actor="shell", call=["Calculator"]).agent.user)
    assert program.post(f"{PAGE}try/", {"agent": "me"}).status_code == 403
    assert not Call.objects.exists()
