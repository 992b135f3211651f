"""A reference means one published tool, found once per revision."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from registry import resolution, revision
from registry.models import ToolkitVersion
from registry.publishing import deprecate, withdraw
from registry.resolution import callable_tools, resolve
from registry.toolref import ToolRef
from registry.toolspec import RetrySpec, ToolSpec
from tests.factories.registry import draft, numbers, person, published

pytestmark = pytest.mark.django_db


def found(text: str) -> str | None:
    ref = ToolRef.parse(text)
    assert ref is not None
    spec = resolve(ref)
    return spec.tool_id if spec else None


@pytest.fixture
def versions() -> dict[str, ToolkitVersion]:
    return {number: published("Calculator", number) for number in ("1.0.0", "1.9.0", "1.10.0", "2.0.0")}


def test_a_full_version_is_exactly_that_version(versions: dict[str, ToolkitVersion]) -> None:
    assert found("Calculator.Add@1.9.0") == "Calculator.Add@1.9.0"
    assert found("Calculator.Add@1.9.1") is None


def test_a_major_version_alone_is_exactly_its_first(versions: dict[str, ToolkitVersion]) -> None:
    assert found("Calculator.Add@1") == "Calculator.Add@1.0.0"
    assert found("Calculator.Add@3") is None


def test_no_version_is_the_numerically_highest(versions: dict[str, ToolkitVersion]) -> None:
    assert found("Calculator.Add") == "Calculator.Add@2.0.0"
    withdraw(versions["2.0.0"], by=None, reason="wrong")
    assert found("Calculator.Add") == "Calculator.Add@1.10.0"


def test_the_latest_of_a_tool_is_in_the_last_version_that_has_it(versions: dict[str, ToolkitVersion]) -> None:
    published("Calculator", "3.0.0", {"name": "Subtract"})
    assert found("Calculator.Add") == "Calculator.Add@2.0.0"


def test_a_published_version_is_preferred_to_a_newer_deprecated_one(versions: dict[str, ToolkitVersion]) -> None:
    deprecate(versions["2.0.0"], by=None)
    assert found("Calculator.Add") == "Calculator.Add@1.10.0"
    assert found("Calculator.Add@2.0.0") == "Calculator.Add@2.0.0"
    for number in ("1.0.0", "1.9.0", "1.10.0"):
        deprecate(versions[number], by=None)
    assert found("Calculator.Add") == "Calculator.Add@2.0.0"


def test_case_does_not_count(versions: dict[str, ToolkitVersion]) -> None:
    assert found("cALCULATOR.aDD@1") == "Calculator.Add@1.0.0"


def test_drafts_and_withdrawn_versions_cannot_be_called(versions: dict[str, ToolkitVersion]) -> None:
    draft("Calculator", "9.0.0")
    withdraw(versions["1.9.0"], by=None, reason="wrong")
    assert found("Calculator.Add@9.0.0") is None
    assert found("Calculator.Add@1.9.0") is None
    assert found("Calculator.Nothing") is None
    assert found("Nothing.Add") is None


def test_underscores_are_not_wildcards() -> None:
    published("A_B", "1.0.0")
    assert found("AxB.Add") is None


def test_a_spec_says_all_about_a_tool() -> None:
    author = person("ada")
    tool = {
        "title": "Add numbers",
        "risk": "medium",
        "capabilities": ["network.read", "data.read"],
        "idempotency": "read",
        "requirements": {"userId": True},
        "runtime": {
            "type": "http",
            "endpoint": "http://127.0.0.1:9/",
            "timeout": "500ms",
            "retry": {"maxAttempts": 2, "backoff": "2m"},
        },
        "auth": {"profile": "bearer", "secretRef": "key"},
    }
    version = published("Calculator", "1.2.3", tool, title="Calc", description="Sums.", by=author)
    spec = resolve(ToolRef("Calculator", "Add"))
    assert spec is not None
    assert (spec.toolkit_id, spec.toolkit, spec.toolkit_title, spec.toolkit_description) == (
        version.toolkit_id,
        "Calculator",
        "Calc",
        "Sums.",
    )
    assert (spec.tool_id, spec.flat_name, spec.version, spec.state) == (
        "Calculator.Add@1.2.3",
        "Calculator_Add",
        "1.2.3",
        "published",
    )
    assert (spec.risk.word, spec.idempotency, spec.capabilities) == ("medium", "read", ("data.read", "network.read"))
    assert (spec.digest, spec.version_digest) == (version.tools.get().digest, version.digest)
    assert spec.requirements == {"user_id": True}
    assert (spec.runtime.type, spec.runtime.dispatch, spec.runtime.timeout) == ("http", "queue", 0.5)
    assert spec.runtime.retry == RetrySpec(max_attempts=2, backoff=120.0)
    assert spec.runtime.options == {"endpoint": "http://127.0.0.1:9/"}
    assert spec.auth == {"profile": "bearer", "secretRef": "key"}
    assert spec.edited_by_id == author.pk
    assert not spec.is_deprecated
    assert [violation.parameter for violation in spec.input.violations({"a": 1, "b": "x"})] == ["b"]
    assert spec.output is not None
    assert spec.output.violations("x")


def test_a_tool_without_output_has_no_output_schema() -> None:
    published("Bell", "1.0.0", {"name": "Ring", "input": numbers(), "output": None})
    spec = resolve(ToolRef("Bell", "Ring"))
    assert spec is not None
    assert spec.output is None


def glancing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that go straight to the driver, where nobody else counts them."""
    seen: list[str] = []
    glance = vars(revision)["glance"]

    def noted(statement: str, *rest: Any) -> Any:
        seen.append(statement)
        return glance(statement, *rest)

    monkeypatch.setattr(revision, "glance", noted)
    return seen


def test_asking_again_costs_one_small_query(
    versions: dict[str, ToolkitVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    found("Calculator.Add")
    glances = glancing(monkeypatch)
    with CaptureQueriesContext(connection) as queries:
        for _ in range(10):
            found("Calculator.Add")
    assert glances == ["SELECT number FROM registry_revision"] * 10
    assert len(queries) == 0


def test_a_change_is_seen_by_the_next_question(versions: dict[str, ToolkitVersion]) -> None:
    assert found("Calculator.Add") == "Calculator.Add@2.0.0"
    published("Calculator", "2.0.1")
    assert found("Calculator.Add") == "Calculator.Add@2.0.1"


def test_callable_tools_are_ordered_by_name_then_version(versions: dict[str, ToolkitVersion]) -> None:
    bell = published("Bell", "1.0.0", {"name": "Ring"}, {"name": "Hush"})
    other = published("Other", "1.0.0")
    deprecate(versions["1.0.0"], by=None)
    draft("Bell", "2.0.0", {"name": "Ring"})
    tools = callable_tools({versions["1.0.0"].toolkit_id, bell.toolkit_id})
    assert [tool.tool_id for tool in tools] == [
        "Bell.Hush@1.0.0",
        "Bell.Ring@1.0.0",
        "Calculator.Add@1.0.0",
        "Calculator.Add@1.9.0",
        "Calculator.Add@1.10.0",
        "Calculator.Add@2.0.0",
    ]
    assert tools is callable_tools([bell.toolkit_id, versions["1.0.0"].toolkit_id])
    assert [tool.toolkit for tool in callable_tools([other.toolkit_id])] == ["Other"]
    assert callable_tools([]) == ()


def test_a_thousand_tools_are_listed_with_few_queries_and_resolved_with_none_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [published(f"Many{n}", "1.0.0", *({"name": f"Tool{i}"} for i in range(250))).toolkit_id for n in range(4)]
    with CaptureQueriesContext(connection) as queries:
        assert len(callable_tools(ids)) == 1000
    assert len(queries) <= 5
    found("Many1.Tool7")
    glances = glancing(monkeypatch)
    with CaptureQueriesContext(connection) as queries:
        found("Many1.Tool7")
    assert (len(glances), len(queries)) == (1, 0)


def test_strangers_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolution, "MAX_REMEMBERED", 10)
    for number in range(50):
        assert found(f"Nothing.Tool{number}") is None
    assert len(resolution._book.found) <= 10


def test_the_digest_of_a_tool_names_its_exact_version_and_content() -> None:
    digests: set[str] = set()
    for number, tool in enumerate([{}, {}, {"risk": "medium"}, {"description": "Other."}, {"output": None}]):
        published("Calculator", f"1.0.{number}", tool)
        spec: ToolSpec | None = resolve(ToolRef("Calculator", "Add"))
        assert spec is not None
        digests.add(spec.digest)
    assert len(digests) == 5
