"""The shell imports and exports toolkits, and says what happened."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit.models import Event
from registry import yamlwriting
from registry.models import Toolkit, ToolkitVersion
from tests.factories.registry import draft, manifest, numbers, person, published

pytestmark = pytest.mark.django_db


def run(*arguments: Any) -> str:
    out = StringIO()
    call_command(*map(str, arguments), stdout=out)
    return out.getvalue()


def write(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document) if path.suffix == ".json" else yamlwriting.write(document))
    return path


def test_a_manifest_is_imported_as_a_draft_and_twice_is_nothing_new(tmp_path: Path) -> None:
    path = write(tmp_path / "calculator.yaml", manifest())
    assert run("import_toolkit", path) == "Calculator@1.0.0: created\n"
    assert run("import_toolkit", path) == "Calculator@1.0.0: unchanged\n"
    assert run("import_toolkit", path, "--publish") == "Calculator@1.0.0: unchanged, published\n"
    assert run("import_toolkit", path, "--publish") == "Calculator@1.0.0: unchanged, already published\n"
    assert list(Event.objects.order_by("pk").values_list("event", "actor")) == [
        ("toolkit.created", "shell"),
        ("version.created", "shell"),
        ("version.published", "shell"),
    ]


def test_a_folder_is_imported_in_the_order_of_versions_with_a_verdict_for_each(tmp_path: Path) -> None:
    write(tmp_path / "b.yaml", manifest("Calculator", "1.0.0"))
    write(tmp_path / "a.json", manifest("Calculator", "1.1.0", {"input": numbers("a", "b", c={"type": "number"})}))
    write(tmp_path / "c.yaml", manifest("Calculator", "2.0.0", {"input": numbers("a", "b", "c")}))
    assert run("import_toolkit", tmp_path, "--publish").splitlines() == [
        "Calculator@1.0.0: created, published",
        "Calculator@1.1.0: created, published",
        "  compared with Calculator@1.0.0: safe",
        "    Add: optional parameter c was added",
        "Calculator@2.0.0: created, published",
        "  compared with Calculator@1.1.0: breaking",
        "    Add: parameter c is now required",
    ]


def test_a_risky_version_waits_for_a_review_unless_a_reviewer_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "calculator.yaml", manifest("Calculator", "1.0.0", {"risk": "high"}))
    assert "waits for a review" in run("import_toolkit", path, "--publish")
    version = ToolkitVersion.objects.get()
    assert version.is_in_review
    person("bob")
    assert "published, reviewed by bob" in run("import_toolkit", path, "--publish", "--reviewer", "bob")
    event = Event.objects.get(event="version.published")
    assert event.actor == "shell"
    assert "user:bob" in str(event.detail)


def test_a_failing_manifest_is_named_with_file_line_and_path_and_nothing_is_written(tmp_path: Path) -> None:
    write(tmp_path / "1.yaml", manifest("Calculator", "1.0.0"))
    text = yamlwriting.write(manifest("Calculator", "1.1.0")).replace("runtime:", "rntime:")
    (tmp_path / "2.yaml").write_text(text)
    line = text[: text.index("rntime")].count("\n") + 1
    with pytest.raises(CommandError) as refused:
        run("import_toolkit", tmp_path, "--publish")
    assert f"2.yaml: line {line}: spec.tools[0].rntime: is not a known field" in str(refused.value)
    assert refused.value.returncode == 1
    assert not Toolkit.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.parametrize("text", ["a: [", "!!python/object:os.system {}", "", "{", "just words"])
def test_a_file_that_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(CommandError, match=r"bad\.yaml"):
        run("import_toolkit", tmp_path / "bad.yaml")


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "calculator.yaml", manifest())
    with pytest.raises(CommandError, match="no such file"):
        run("import_toolkit", tmp_path / "missing.yaml")
    with pytest.raises(CommandError, match="no user named nobody"):
        run("import_toolkit", path, "--publish", "--reviewer", "nobody")
    with pytest.raises(CommandError, match="goes with --publish"):
        run("import_toolkit", path, "--reviewer", "nobody")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommandError, match="Toolkit"):
        run("import_toolkit", tmp_path / "empty")
    assert not Toolkit.objects.exists()


def test_an_exported_manifest_imports_unchanged(tmp_path: Path) -> None:
    published("Calculator", "1.0.0")
    published("Calculator", "1.10.0", {"description": "Line one.\nLine two: 1e5"})
    draft("Calculator", "2.0.0")
    for name, options in (("a.yaml", []), ("a.json", ["--json"])):
        (tmp_path / name).write_text(run("export_toolkit", "calculator", *options))
        assert run("import_toolkit", tmp_path / name).startswith("Calculator@1.10.0: unchanged\n")
    assert json.loads(run("export_toolkit", "Calculator@2.0.0", "--json"))["metadata"]["version"] == "2.0.0"


@pytest.mark.parametrize("name", ["Nothing", "Calculator@9.9.9", "Calculator@latest", "../x"])
def test_exporting_what_does_not_exist_is_refused(name: str) -> None:
    draft()
    with pytest.raises(CommandError, match=r"There is no version|is not a toolkit's name"):
        run("export_toolkit", name)


def test_the_examples_can_be_imported_and_published() -> None:
    examples = Path(__file__).parents[2] / "examples"
    for folder in ("calculator", "doorbell", "system"):
        assert "published" in run("import_toolkit", examples / folder, "--publish")
    assert {str(version) for version in ToolkitVersion.objects.callable()} >= {"Calculator@1.0.0", "Calculator@1.1.0"}
