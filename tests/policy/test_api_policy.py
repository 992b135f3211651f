"""Policy over REST: drafts are written, compared, activated; questions are answered; replays are followed."""

from typing import Any

import pytest
from guardian.shortcuts import assign_perm
from rest_framework.test import APIClient

from audit.models import Event
from policy import policyfile, revisions
from policy.models import Revision
from tests.policy.stage import SMALL, Stage, draft, live, stage

pytestmark = pytest.mark.django_db

REVISIONS = "/api/policy/revisions/"
EVALUATE = "/api/policy/evaluate/"
REPLAY = "/api/policy/replay/"
DENY = {"name": "no payouts", "tools": ["Payments.Payout"], "effect": "deny"}


@pytest.fixture
def here() -> Stage:
    return stage()


@pytest.fixture
def api(here: Stage) -> APIClient:
    return here.api("editor")


def post(client: APIClient, path: str, body: Any = None, **headers: Any) -> Any:
    return client.post(path, body, format="json", headers=headers)


# Drafts


def test_a_draft_is_written_from_rules_and_told_in_sentences(api: APIClient) -> None:
    answer = post(api, REVISIONS, {"rules": [SMALL], "note": "small refunds"})
    assert answer.status_code == 201
    made = answer.json()
    assert answer["Location"] == f"{REVISIONS}{made['number']}/"
    assert (made["state"], made["note"], made["created_by"]) == ("draft", "small refunds", "editor")
    assert made["rules"] == [SMALL]
    assert made["sentences"] == ["Agent support-bot may call Payments.Refund when input.amount <= 100.0."]
    assert made["digest"].startswith("sha256:")
    assert api.get(answer["Location"]).json() == made


def test_a_draft_is_written_from_a_file_with_its_note(api: APIClient) -> None:
    text = policyfile.written(revisions.rules_of(draft(SMALL)), note="from a file")
    made = post(api, REVISIONS, {"text": text}).json()
    assert (made["rules"], made["note"]) == ([SMALL], "from a file")


def test_a_draft_starts_with_the_rules_of_the_revision_it_is_based_on(api: APIClient) -> None:
    first = live(SMALL)
    made = post(api, REVISIONS, {"based_on": first.number}).json()
    assert (made["rules"], made["based_on"]) == ([SMALL], first.number)


def test_an_empty_list_of_rules_is_an_empty_draft_even_if_it_is_based_on_another(api: APIClient) -> None:
    assert post(api, REVISIONS, {"based_on": live(SMALL).number, "rules": []}).json()["rules"] == []


def test_a_bad_rule_is_refused_with_its_path_and_nothing_is_written(api: APIClient) -> None:
    rules = [SMALL, DENY | {"effect": "perhaps"}, {"name": "x", "effect": "allow", "when": "input.amount <="}]
    answer = post(api, REVISIONS, {"rules": rules})
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_policy"
    assert answer.json()["errors"][0]["path"] == "rules[1].effect"
    answer = post(api, REVISIONS, {"rules": [SMALL, rules[2]]})
    assert [error["path"] for error in answer.json()["errors"]] == ["rules[1].when"]
    assert not Revision.objects.exists()


def test_a_bad_file_is_refused_with_path_and_line(api: APIClient) -> None:
    text = (
        "apiVersion: placet.dev/v1\nkind: Policy\nspec:\n  rules:\n    - name: a\n      effect: allow\n      wen: x\n"
    )
    (error,) = post(api, REVISIONS, {"text": text}).json()["errors"]
    assert (error["path"], error["line"]) == ("spec.rules[0].wen", 7)
    text = text.replace("wen: x", "when: input.amount <=")
    (error,) = post(api, REVISIONS, {"text": text}).json()["errors"]
    assert (error["path"], error["line"]) == ("spec.rules[0].when", 7)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"rules": [], "text": "x"}, ""),
        ({"rules": "x"}, "rules"),
        ({"rules": [7]}, "rules[0]"),
        ({"based_on": 99}, "based_on"),
        ({"note": "n" * 201}, "note"),
        ({"nots": "n"}, "nots"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_by_name(api: APIClient, body: Any, path: str) -> None:
    answer = post(api, REVISIONS, body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == path
    assert not Revision.objects.exists()


@pytest.mark.parametrize("method", ["put", "patch"])
def test_a_draft_gets_other_rules(api: APIClient, method: str) -> None:
    revision = draft(SMALL)
    answer = getattr(api, method)(f"{REVISIONS}{revision.number}/", {"rules": [DENY]}, format="json")
    assert (answer.status_code, answer.json()["rules"]) == (200, [DENY])


def test_a_draft_that_someone_else_changed_is_not_overwritten(api: APIClient) -> None:
    path = f"{REVISIONS}{draft(SMALL).number}/"
    read = api.get(path).json()["digest"]
    assert api.put(path, {"rules": [DENY], "digest": read}, format="json").status_code == 200
    answer = api.put(path, {"rules": [], "digest": read}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert api.get(path).json()["rules"] == [DENY]


def test_what_was_live_is_neither_changed_nor_thrown_away(api: APIClient) -> None:
    path = f"{REVISIONS}{live(SMALL).number}/"
    assert api.put(path, {"rules": []}, format="json").status_code == 409
    assert api.delete(path).status_code == 409
    assert api.get(path).json()["rules"] == [SMALL]


def test_a_draft_is_thrown_away(api: APIClient) -> None:
    path = f"{REVISIONS}{draft(SMALL).number}/"
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404


# Live, and back


def test_activating_retires_the_other_and_rolling_back_is_the_same_step(api: APIClient) -> None:
    first, second = live(SMALL), draft(DENY)
    answer = post(api, f"{REVISIONS}{second.number}/activate/")
    assert (answer.json()["state"], answer.json()["activated_by"]) == ("active", "editor")
    assert api.get(f"{REVISIONS}{first.number}/").json()["state"] == "retired"
    assert post(api, f"{REVISIONS}{first.number}/activate/").json()["state"] == "active"
    assert post(api, f"{REVISIONS}{first.number}/activate/").status_code == 409
    events = Event.objects.filter(subject_kind="policy", event="policy.activated", actor="user:editor")
    assert events.count() == 2


def test_a_revision_that_cannot_become_live_says_why(api: APIClient) -> None:
    revision = draft({"name": "a", "effect": "ask", "ask": {"approvers": "nobody-yet"}})
    answer = post(api, f"{REVISIONS}{revision.number}/activate/")
    assert answer.status_code == 409
    assert "nobody-yet" in answer.json()["message"]


def test_a_shadow_is_set_and_ended(api: APIClient) -> None:
    live(SMALL)
    path = f"{REVISIONS}{draft(DENY).number}/"
    assert post(api, f"{path}shadow/").json()["is_shadow"] is True
    assert api.put(path, {"rules": []}, format="json").status_code == 409
    assert post(api, f"{path}shadow/", {"on": False}).json()["is_shadow"] is False
    assert post(api, f"{path}shadow/", {"on": "maybe"}).status_code == 422


def test_ending_the_shadow_of_one_revision_leaves_another_one_alone(api: APIClient) -> None:
    shadow, other = draft(SMALL), draft(DENY)
    post(api, f"{REVISIONS}{shadow.number}/shadow/")
    post(api, f"{REVISIONS}{other.number}/shadow/", {"on": False})
    assert api.get(f"{REVISIONS}{shadow.number}/").json()["is_shadow"] is True


def test_the_difference_to_the_live_one_or_another_is_told_rule_by_rule(api: APIClient) -> None:
    first = live(SMALL)
    second = draft(SMALL | {"when": "input.amount <= 50.0"}, DENY)
    told = api.get(f"{REVISIONS}{second.number}/difference/").json()
    assert (told["old"], told["new"]) == (first.number, second.number)
    assert [(change["kind"], change["name"]) for change in told["changes"]] == [
        ("changed", "small refunds go through"),
        ("added", "no payouts"),
    ]
    assert told["changes"][0]["before"] == SMALL
    assert "50.0" in told["changes"][0]["sentence_after"]
    path = f"{REVISIONS}{first.number}/difference/"
    assert [change["kind"] for change in api.get(path, {"to": second.number}).json()["changes"]] == [
        "changed",
        "removed",
    ]
    assert [change["kind"] for change in api.get(path, {"to": 0}).json()["changes"]] == ["added"]


@pytest.mark.parametrize("to", ["99", "x", "-1", "9" * 30, ""])
def test_a_difference_to_nothing_is_a_bad_parameter(api: APIClient, to: str) -> None:
    answer = api.get(f"{REVISIONS}{draft().number}/difference/", {"to": to})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "to")


def test_an_export_is_a_file_that_reads_back_equal(api: APIClient) -> None:
    revision = draft(SMALL, DENY, note="both")
    answer = api.get(f"{REVISIONS}{revision.number}/export/")
    assert answer["Content-Type"].startswith("application/yaml")
    assert f"policy-{revision.number}.yaml" in answer["Content-Disposition"]
    assert policyfile.read(answer.content.decode()) == revisions.rules_of(revision)


def test_the_list_is_narrowed_and_a_misspelled_question_is_refused(api: APIClient) -> None:
    first, second = live(SMALL), draft(DENY, note="later")
    every = api.get(REVISIONS).json()
    assert [row["number"] for row in every["results"]] == [second.number, first.number]
    assert "rules" not in every["results"][0]
    assert [row["number"] for row in api.get(REVISIONS, {"state": "draft"}).json()["results"]] == [second.number]
    assert [row["number"] for row in api.get(REVISIONS, {"search": "later"}).json()["results"]] == [second.number]
    assert api.get(REVISIONS, {"stat": "draft"}).status_code == 400


def test_a_revision_that_does_not_exist_is_not_found(api: APIClient) -> None:
    for path in ("99/", "99/export/", "99/difference/", "99/differences/", "999999999999/"):
        assert api.get(f"{REVISIONS}{path}").status_code == 404, path


# Who may


def test_who_may_read_may_not_write_and_an_agent_may_neither(here: Stage) -> None:
    number = draft(SMALL).number
    assign_perm("policy.edit_policy", here.agent.agent.user)
    reads = [REVISIONS, f"{REVISIONS}{number}/", f"{REVISIONS}{number}/export/", f"{REVISIONS}{number}/differences/"]
    writes = [
        ("post", REVISIONS),
        ("put", f"{REVISIONS}{number}/"),
        ("patch", f"{REVISIONS}{number}/"),
        ("delete", f"{REVISIONS}{number}/"),
        ("post", f"{REVISIONS}{number}/activate/"),
        ("post", f"{REVISIONS}{number}/shadow/"),
    ]
    readable = {"editor": 200, "viewer": 200, "auditor": 403, "stranger": 403, "agent": 403, "anonymous": 401}
    for role, status in readable.items():
        client = here.api(role)
        for path in reads:
            assert client.get(path).status_code == status, (role, path)
        if role == "editor":
            continue
        for method, path in writes:
            refused = getattr(client, method)(path, {"rules": []}, format="json")
            assert refused.status_code == (401 if role == "anonymous" else 403), (role, method, path)
    assert Revision.objects.get().state == "draft"
    assert [rule.name for rule in revisions.rules_of(Revision.objects.get())] == [SMALL["name"]]


def test_a_person_s_session_needs_the_token_against_forgery(here: Stage) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(here.editor)
    assert post(client, REVISIONS, {"rules": []}).status_code == 403
    assert not Revision.objects.exists()
