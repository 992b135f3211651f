"""@tool marks a function, checks every word that is said about it, and changes nothing else."""

from typing import Any

import pytest

from placet import RetryableToolError, ToolContext, ToolError, ToolkitError, tool
from placet.context import Secrets
from placet.tool import definition_of


def test_a_marked_function_is_still_the_function() -> None:
    @tool
    def get_timestamp() -> str:
        """Tells the time."""
        return "now"

    definition = definition_of(get_timestamp)
    assert get_timestamp() == "now"
    assert definition is not None
    assert (definition.name, definition.title) == ("GetTimestamp", "Get timestamp")
    assert (definition.risk, definition.idempotency, definition.dispatch) == ("low", "non_idempotent", "queue")
    assert (definition.timeout, definition.description) == ("30s", "Tells the time.")


def test_an_inline_tool_gets_a_timeout_that_inline_allows() -> None:
    @tool(dispatch="inline")
    def quick() -> None:
        """Is quick."""

    assert definition_of(quick).timeout == "5s"  # type: ignore[union-attr]


def test_the_description_ends_where_the_sections_begin() -> None:
    @tool
    def send(to: str) -> None:
        """Sends a mail
        to someone.

        It may take a while.

        Args:
            to: Who.
        """

    assert definition_of(send).description == "Sends a mail to someone.\n\nIt may take a while."  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"risk": "tiny"}, "risk must be one of low, medium, high, critical, not 'tiny'"),
        ({"idempotency": "always"}, "idempotency must be one of"),
        ({"dispatch": "now"}, "dispatch must be one of queue, inline"),
        ({"timeout": "soon"}, "timeout must be a duration such as 500ms"),
        ({"timeout": "0s"}, "timeout must be longer than nothing"),
        ({"dispatch": "inline", "timeout": "6s"}, "inline tools are of low or medium risk and take at most 5s"),
        ({"dispatch": "inline", "risk": "high"}, "inline tools are of low or medium risk"),
        ({"capabilities": "data.read"}, "capabilities must be a list, not a single str"),
        ({"capabilities": ["Data Read"]}, "the capability 'Data Read' must be dotted"),
        ({"requires_secrets": "KEY"}, "requires_secrets must be a list"),
        ({"requires_authorization": [{"oauth2": {}}]}, "requires_authorization must name each requirement by its id"),
        ({"retry": {"attempts": 3}}, "retry has no field 'attempts'"),
        ({"retry": {"maxAttempts": 0}}, "retry.maxAttempts must be a whole number of at least 1"),
        ({"retry": {"jitter": "some"}}, "retry.jitter must be one of none, full, equal"),
        ({"name": "Send Mail"}, "the name 'Send Mail' must be a letter"),
        ({"description": " "}, "a tool needs a docstring or a description"),
    ],
)
def test_a_wrong_word_is_refused_with_file_line_and_function(said: dict[str, Any], reason: str) -> None:
    def send() -> None:
        """Sends."""

    with pytest.raises(ToolkitError) as refusal:
        tool(**said)(send)
    assert reason in str(refusal.value)
    assert str(refusal.value).startswith(f"test_tool.py:{send.__code__.co_firstlineno}: send: ")


def test_a_generator_is_no_tool() -> None:
    with pytest.raises(ToolkitError, match="a generator cannot be a tool"):

        @tool
        def count() -> Any:
            """Counts."""
            yield 1


def test_secrets_are_shown_by_no_means() -> None:
    context = ToolContext(secrets={"KEY": "sesame"}, authorization={"google": "sesame"})
    assert context.secrets["KEY"] == context.authorization["google"] == "sesame"
    for thing in (context, context.secrets, context.authorization, context.secrets.items(), context.log):
        assert "sesame" not in f"{thing!r} {thing} {[thing]}"
    with pytest.raises(TypeError, match="secrets do not travel"):
        context.secrets.__reduce__()


def test_a_secret_that_was_not_given_is_missed_by_name() -> None:
    with pytest.raises(KeyError, match="no secret named 'KEY' was given"):
        Secrets({"OTHER": "sesame"})["KEY"]
    assert Secrets().get("KEY") is None


def test_the_context_works_outside_a_host_too() -> None:
    told: list[dict[str, Any]] = []
    context = ToolContext(user_id="u1", timeout=60, emit=told.append)
    context.log.info("%s rings", "doorbell42")
    context.progress(1, 2, "half")
    assert told == [
        {"kind": "log", "level": "info", "message": "doorbell42 rings"},
        {"kind": "progress", "done": 1, "total": 2, "message": "half"},
    ]
    assert context.user_id == "u1"
    assert 59 < (context.seconds_left or 0) <= 60
    with pytest.raises(ValueError, match="finite numbers"):
        context.progress(float("nan"))


def test_errors_say_whether_to_try_again() -> None:
    assert RetryableToolError("no", retry_after_ms=500).can_retry
    assert not ToolError("no").can_retry
    for wrong in ({"retry_after_ms": -1}, {"retry_after_ms": 1.5}):
        with pytest.raises(ValueError, match="whole number of milliseconds"):
            ToolError("no", **wrong)
    with pytest.raises(TypeError, match="developer_message must be a text"):
        ToolError("no", developer_message=1)  # type: ignore[arg-type]
