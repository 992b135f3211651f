"""I14: what an approval is bound to. Each part alone makes another digest; what is no part of it makes none."""

from dataclasses import replace
from typing import Any

import pytest

from policy.binding import digest_of
from policy.question import Question
from registry.toolspec import RuntimeSpec
from tests.policy.rules import agent, question, spec

TOOL = replace(
    spec("Payments.Refund"),
    digest="sha256:one",
    runtime=replace(spec().runtime, options={"endpoint": "https://pay.invalid/refund"}),
    auth={"profile": "bearer", "secretRef": "pay-key"},
)
ASKED = replace(question(TOOL, agent("support-bot", 7), amount=5, to="acct_1"), user_id="carla")


def bound(asked: Question = ASKED, brought: tuple[str, ...] = ("google", "API_KEY"), revision: int = 3) -> str:
    return digest_of(asked, brought=brought, revision=revision)


def with_tool(**changes: Any) -> Question:
    return replace(ASKED, tool=replace(TOOL, **changes))


def with_runtime(**changes: Any) -> Question:
    changed: RuntimeSpec = replace(TOOL.runtime, **changes)
    return with_tool(runtime=changed)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(ASKED, caller=agent("support-bot", 8)), id="another agent of the same name"),
        pytest.param(replace(ASKED, caller=agent("sales-bot", 7)), id="another name"),
        pytest.param(replace(ASKED, user_id="dora"), id="on whose behalf"),
        pytest.param(with_tool(tool_id="Payments.Refund@1.0.1"), id="version"),
        pytest.param(with_tool(digest="sha256:two"), id="tool digest"),
        pytest.param(with_tool(auth={"profile": "bearer", "secretRef": "other-key"}), id="secret reference"),
        pytest.param(with_tool(auth={"profile": "basic", "secretRef": "pay-key"}), id="auth profile"),
        pytest.param(with_runtime(type="external"), id="runtime"),
        pytest.param(with_runtime(options={"endpoint": "https://pay.invalid/payout"}), id="endpoint"),
        pytest.param(replace(ASKED, arguments={"amount": 6, "to": "acct_1"}), id="a value"),
        pytest.param(replace(ASKED, arguments={"amount": 5.0, "to": "acct_1"}), id="a number's kind"),
        pytest.param(replace(ASKED, arguments={"amount": "5", "to": "acct_1"}), id="a text instead of a number"),
        pytest.param(replace(ASKED, arguments={"amount": 5, "to": "аcct_1"}), id="a letter that looks alike"),
        pytest.param(replace(ASKED, arguments={"amount": 5}), id="an argument less"),
        pytest.param(replace(ASKED, arguments={"amount": 5, "to": "acct_1", "note": None}), id="an argument more"),
    ],
)
def test_a_changed_question_is_bound_otherwise(other: Question) -> None:
    assert bound(other) != bound()


@pytest.mark.parametrize("brought", [(), ("google",), ("google", "API_KEY", "more"), ("google", "API_KEX")])
def test_other_secrets_of_the_caller_bind_otherwise(brought: tuple[str, ...]) -> None:
    assert bound(brought=brought) != bound()


def test_another_policy_revision_binds_otherwise() -> None:
    assert len({bound(revision=number) for number in range(5)}) == 5


def test_order_and_the_credential_that_was_shown_do_not_matter() -> None:
    turned = replace(ASKED, arguments={"to": "acct_1", "amount": 5})
    assert bound(turned, brought=("API_KEY", "google")) == bound()
    assert bound(replace(ASKED, caller=replace(ASKED.caller, credential="jwt"))) == bound()


def test_parts_cannot_be_moved_into_each_other() -> None:
    """Each part stands in its own place: a name that ends where another begins is not the same."""
    one = replace(ASKED, caller=agent("bot", 7), user_id="1")
    other = replace(ASKED, caller=agent("bot1", 7), user_id="")
    assert bound(one) != bound(other)
    assert bound(brought=("a,b",)) != bound(brought=("a", "b"))
