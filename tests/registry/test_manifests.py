"""A manifest becomes a version, whole or not at all; twice is the same as once."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from audit.models import Event
from registry import yamlwriting
from registry.manifests import ManifestError, export_manifest, import_folder, import_manifest
from registry.models import Capability, Source, Tool, Toolkit, ToolkitVersion
from registry.publishing import publish, request_review
from registry.risk import RiskLevel
from tests.factories.registry import draft, manifest, numbers, person, published

pytestmark = pytest.mark.django_db

CODE = '''"""Sums."""
from placet import Toolkit, tool

toolkit = Toolkit("Sums", "1.0.0")


@tool(capabilities=["data.read"], idempotency="read")
def add(a: float, b: float) -> float:
    """Adds two numbers together."""
    return a + b
'''
FULL = """\
apiVersion: placet.dev/v1
kind: Toolkit
metadata:
  name: Mail
  version: 1.2.0
  title: Mail
  description: Letters.
spec:
  tools:
    - name: Send
      title: Send a letter
      description: Sends a letter.
      risk: medium
      capabilities: [network.write, mail.send]
      idempotency: keyed
      input:
        type: object
        properties:
          to: {type: string, format: email}
          is_admin: {type: boolean}
        required: [to]
      output: null
      nonInferrable: [is_admin]
      annotations: {readOnlyHint: false}
      requirements:
        authorization: [{id: google, oauth2: {scopes: [mail.send]}}]
        secrets: [{id: SMTP_KEY}]
        userId: true
      runtime:
        type: http
        endpoint: https://mail.example.org/send
        timeout: 2m
        retry: {maxAttempts: 3, backoff: 500ms, maxBackoff: 10s, jitter: full}
      auth:
        profile: oauth2_client_credentials
        secretRef: mail:client
        tokenUrl: https://mail.example.org/token
        scopes: [mail.send]
    - name: Draft
      runtime: {type: session}
"""


def events() -> list[tuple[str, str, str]]:
    return list(Event.objects.order_by("pk").values_list("subject_id", "event", "actor"))


def refusal(document: Any) -> ManifestError:
    """The error of an import, which must leave nothing behind."""
    before = [model.objects.count() for model in (Toolkit, ToolkitVersion, Tool, Capability, Source, Event)]
    with pytest.raises(ManifestError) as refused:
        import_manifest(document, by=None)
    assert [model.objects.count() for model in (Toolkit, ToolkitVersion, Tool, Capability, Source, Event)] == before
    return refused.value


def test_every_field_of_a_manifest_arrives_in_the_rows() -> None:
    author = person("ada")
    result = import_manifest(FULL, by=author)
    version = result.version
    assert (result.outcome, str(version), version.state) == ("created", "Mail@1.2.0", "draft")
    assert (version.title, version.description, version.risk) == ("Mail", "Letters.", RiskLevel.MEDIUM)
    assert version.created_by == version.edited_by == author
    send, other = version.tools.order_by("position")
    assert (send.name, send.title, send.risk, send.idempotency) == ("Send", "Send a letter", RiskLevel.MEDIUM, "keyed")
    assert {capability.name for capability in send.capabilities.all()} == {"network.write", "mail.send"}
    assert list(send.input_schema["properties"]) == ["to", "is_admin"]
    assert send.output_schema is None
    assert send.non_inferrable == ["is_admin"]
    assert send.requirements == {
        "authorization": [{"id": "google", "oauth2": {"scopes": ["mail.send"]}}],
        "secrets": [{"id": "SMTP_KEY"}],
        "user_id": True,
    }
    assert send.runtime["timeout"] == "120s"
    assert send.runtime["retry"] == {"maxAttempts": 3, "backoff": "500ms", "maxBackoff": "10s", "jitter": "full"}
    assert send.auth["secretRef"] == "mail:client"
    assert (other.risk, other.idempotency, other.output_schema) == (RiskLevel.LOW, "non_idempotent", {})
    assert other.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert events() == [("Mail", "toolkit.created", "user:ada"), ("Mail@1.2.0", "version.created", "user:ada")]


def test_importing_twice_changes_nothing() -> None:
    first = import_manifest(FULL, by=person("ada"))
    told = events()
    again = import_manifest(FULL.replace("2m", "120s"), by=person("bob"))
    assert (again.outcome, again.version.edited_by) == ("unchanged", first.version.edited_by)
    assert events() == told


def test_what_is_exported_is_what_was_imported() -> None:
    version = import_manifest(FULL, by=None).version
    exported = export_manifest(version)
    assert import_manifest(exported, by=None).outcome == "unchanged"
    assert import_manifest(yamlwriting.write(exported), by=None).outcome == "unchanged"
    digest = version.digest
    ToolkitVersion.objects.get().delete()
    assert import_manifest(exported, by=None).version.digest == digest


def test_defaults_said_and_unsaid_are_the_same_content() -> None:
    said = manifest("Calculator", "1.0.0")
    plain = deepcopy(said)
    said["spec"]["tools"][0] |= {"risk": "low", "capabilities": [], "idempotency": "non_idempotent", "annotations": {}}
    said["spec"]["tools"][0]["runtime"] |= {"timeout": "30000ms", "retry": {"jitter": "none"}, "dispatch": "queue"}
    import_manifest(plain, by=None)
    assert import_manifest(said, by=None).outcome == "unchanged"


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Other."},
        {"title": "Other"},
        {"risk": "medium"},
        {"capabilities": ["data.write"]},
        {"idempotency": "read"},
        {"input": numbers("a", "c")},
        {"output": None},
        {"nonInferrable": ["a"]},
        {"annotations": {"readOnlyHint": True}},
        {"requirements": {"userId": True}},
        {"runtime": {"type": "http", "endpoint": "http://127.0.0.1:9/other"}},
        {"auth": {"profile": "bearer", "secretRef": "key"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_content_under_a_published_version_is_refused(change: dict[str, Any]) -> None:
    version = published("Calculator", "1.0.0", {})
    error = refusal(manifest("Calculator", "1.0.0", change))
    assert error.path == "metadata.version"
    assert "Calculator@1.0.0 is published with another content" in error.reason
    version.refresh_from_db()
    assert import_manifest(manifest("Calculator", "1.0.0", {}), by=None).outcome == "unchanged"


def test_a_draft_is_replaced_whole_and_loses_its_review() -> None:
    version = request_review(draft("Calculator", "1.0.0", {"name": "Add"}, {"name": "Subtract"}), by=None)
    editor = person("eve")
    result = import_manifest(manifest("Calculator", "1.0.0", {"name": "Add", "risk": "high"}), by=editor)
    assert (result.outcome, result.version.pk, result.version.edited_by) == ("updated", version.pk, editor)
    assert [tool.name for tool in result.version.tools.all()] == ["Add"]
    assert result.version.review_requested_at is None
    assert result.version.risk == RiskLevel.HIGH
    assert events()[-1] == ("Calculator@1.0.0", "version.updated", "user:eve")


def test_a_draft_that_cannot_be_replaced_stays_as_it_was() -> None:
    draft("A_B", "1.0.0", {"name": "C"})
    version = draft("A", "1.0.0", {"name": "Add"})
    error = refusal(manifest("A", "1.0.0", {"name": "Add"}, {"name": "B_C"}))
    assert (error.path, "belongs to the toolkit A_B" in error.reason) == ("spec.tools[1].name", True)
    assert [tool.name for tool in version.tools.all()] == ["Add"]


def test_the_order_of_tools_is_kept_but_is_no_other_content() -> None:
    names = [{"name": "Zero"}, {"name": "Add"}]
    version = draft("Calculator", "1.0.0", *names)
    assert [tool.name for tool in version.tools.all()] == ["Zero", "Add"]
    assert import_manifest(manifest("Calculator", "1.0.0", *reversed(names)), by=None).outcome == "unchanged"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"rntime": {}}, "spec.tools[1].rntime"),
        ({"name": "add"}, "spec.tools[1].name"),
        ({"name": "Two", "risk": "huge"}, "spec.tools[1].risk"),
        ({"name": "Two", "runtime": {"type": "python", "entrypoint": "a:b"}}, "spec.tools[1].runtime.source"),
    ],
)
def test_what_is_wrong_is_told_with_its_path_and_nothing_is_written(change: dict[str, Any], path: str) -> None:
    assert refusal(manifest("Calculator", "1.0.0", {"capabilities": ["data.read"]}, change)).path == path


def test_a_document_that_is_no_mapping_is_refused() -> None:
    assert "mapping" in refusal(b"[]").reason


def test_an_unknown_field_is_told_with_its_line_and_what_was_meant() -> None:
    error = refusal(FULL.replace("      runtime:\n", "      rntime:\n"))
    assert (error.path, error.line) == ("spec.tools[0].rntime", 29)
    assert "did you mean runtime?" in str(error)
    assert str(error).startswith("line 29: spec.tools[0].rntime")


def test_json_and_yaml_are_read_alike_and_dangerous_ones_are_refused() -> None:
    assert "tag" in refusal(b"apiVersion: !!python/object/apply:os.system [id]").reason
    assert "twice" in refusal(b'{"kind": "Toolkit", "kind": "Toolkit"}').reason
    assert "larger" in refusal(b"x" * 1_100_000).reason
    assert refusal("kind: Toolkit\nkind: Toolkit").line == 2


def test_a_toolkit_is_always_spelled_the_same() -> None:
    draft("Calculator", "1.0.0")
    assert "spelled Calculator" in refusal(manifest("CALCULATOR", "1.1.0")).reason


def test_python_tools_without_a_folder_name_a_source_the_toolkit_has(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(CODE)
    (imported,) = import_folder(tmp_path, by=None)
    document = export_manifest(imported.version)
    stranger = deepcopy(document)
    stranger["metadata"]["name"] = "Thief"
    assert "not known to this toolkit" in refusal(stranger).reason
    newer = deepcopy(document)
    newer["metadata"]["version"] = "1.0.1"
    assert import_manifest(newer, by=None).version.source == imported.version.source
    nameless = deepcopy(document)
    del nameless["spec"]["tools"][0]["runtime"]["source"]
    assert refusal(nameless).path == "spec.tools[0].runtime.source"


def test_a_folder_of_python_tools_and_its_exported_manifest_are_the_same_version(tmp_path: Path) -> None:
    folder = tmp_path / "sums"
    folder.mkdir()
    (folder / "sums.py").write_text(CODE)
    (collected,) = import_folder(folder, by=None)
    publish(collected.version, by=None)
    (folder / "1.0.0.yaml").write_text(yamlwriting.write(export_manifest(collected.version)))
    (again,) = import_folder(folder, by=None)
    assert (again.outcome, again.version.digest) == ("unchanged", collected.version.digest)
    assert collected.version.source is not None
    assert (
        export_manifest(collected.version)["spec"]["tools"][0]["runtime"]["source"] == collected.version.source.digest
    )


def test_changed_code_under_a_published_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(CODE)
    (imported,) = import_folder(tmp_path, by=None)
    publish(imported.version, by=None)
    (tmp_path / "sums.py").write_text(CODE.replace("a + b", "a - b"))
    with pytest.raises(ManifestError, match="another content"):
        import_folder(tmp_path, by=None)
    assert Source.objects.count() == 1


def test_several_manifests_of_a_folder_are_imported_in_the_order_of_versions_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yamlwriting.write(manifest("Calculator", "1.10.0")))
    (tmp_path / "b.yaml").write_text(yamlwriting.write(manifest("Calculator", "1.9.0")))
    (tmp_path / "cities.yaml").write_text("- Paris\n")
    assert [str(result.version) for result in import_folder(tmp_path, by=None)] == [
        "Calculator@1.9.0",
        "Calculator@1.10.0",
    ]
    (tmp_path / "c.json").write_text('{"apiVersion": "placet.dev/v1", "kind": "Toolkit", "metadata": {}}')
    (tmp_path / "d.yaml").write_text(yamlwriting.write(manifest("Calculator", "2.0.0")))
    with pytest.raises(ManifestError, match=r"c\.json: line 1: metadata\.name: is required"):
        import_folder(tmp_path, by=None)
    assert ToolkitVersion.objects.count() == 2


def test_an_entrypoint_that_is_not_in_the_folder_is_refused(tmp_path: Path) -> None:
    document = manifest("Calculator", "1.0.0", {"runtime": {"type": "python", "entrypoint": "missing:add"}})
    (tmp_path / "1.0.0.yaml").write_text(yamlwriting.write(document))
    with pytest.raises(ManifestError, match="not in the folder"):
        import_manifest(tmp_path / "1.0.0.yaml", by=None)
    assert not Toolkit.objects.exists()


def test_who_imports_a_new_toolkit_owns_it_and_may_publish() -> None:
    author = person("ada")
    toolkit = draft("Calculator", by=author).toolkit
    assert toolkit.owner == author
    assert author.has_perm("registry.publish_toolkit", toolkit)
    assert not author.has_perm("registry.call_toolkit", toolkit)
