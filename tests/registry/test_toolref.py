"""ToolRef follows OXP's grammar to the letter."""

import pytest

from registry.toolref import ToolRef


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Calculator.Add", None),
        ("Calculator.Add@1", (1, 0, 0)),
        ("Calculator.Add@1.2.3", (1, 2, 3)),
        ("Calculator.Add@01.0.0", (1, 0, 0)),
    ],
)
def test_a_reference_names_toolkit_tool_and_perhaps_a_version(text: str, version: tuple[int, int, int] | None) -> None:
    assert ToolRef.parse(text) == ToolRef("Calculator", "Add", version)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Calculator",
        "Calculator.",
        ".Add",
        "Calculator.Add.",
        "Calculator.Add\n",
        "Calculator.Add@",
        "Calculator.Add@1.0",
        "Calculator.Add@latest",
        "Calculator.Add@1.0.0-rc",
        "Calculator.Add@1.0.0\n",
        "Calculator.Add@٣",
        "Calculator.Add@" + "9" * 50,
        "Calculator.Pаy",
        "Calc ulator.Add",
        "Calculator.Ad\u200bd",
        "A.B.C",
        "x" * 100_000,
    ],
)
def test_anything_else_is_no_reference(text: str) -> None:
    assert ToolRef.parse(text) is None


def test_a_reference_prints_as_it_is_written() -> None:
    assert str(ToolRef("Calculator", "Add", (1, 1, 0))) == "Calculator.Add@1.1.0"
    assert str(ToolRef("Calculator", "Add")) == "Calculator.Add"
    assert ToolRef("Calculator", "Add").flat_name == "Calculator_Add"
