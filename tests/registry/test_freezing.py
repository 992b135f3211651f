"""What was published stays as it was, whoever writes: the model says so in words, the database has the last one."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from registry.models import Capability, FlatName, FrozenVersion, Source, Tool, Toolkit, ToolkitVersion
from registry.publishing import deprecate, withdraw
from tests.factories.registry import bare_tool, bare_version, draft, person, published

pytestmark = pytest.mark.django_db


def refused(change: Callable[[], Any], word: str = ".") -> None:
    """The database itself refuses a change."""
    with pytest.raises(IntegrityError, match=word), transaction.atomic():
        change()


@pytest.fixture
def version() -> ToolkitVersion:
    return published("Calculator", "1.0.0", {"capabilities": ["data.read"]})


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Other"},
        {"description": "Other"},
        {"major": 9},
        {"digest": "sha256:other"},
        {"risk": 2},
        {"published_at": timezone.now()},
        {"review_requested_at": timezone.now()},
    ],
)
def test_no_frozen_column_of_a_published_version_changes(version: ToolkitVersion, change: dict[str, Any]) -> None:
    refused(lambda: ToolkitVersion.objects.filter(pk=version.pk).update(**change), "never changes")


@pytest.mark.parametrize("column", ["created_by", "edited_by", "reviewed_by", "published_by"])
def test_nobody_is_written_into_the_history_of_a_published_version(version: ToolkitVersion, column: str) -> None:
    refused(lambda: ToolkitVersion.objects.filter(pk=version.pk).update(**{column: person()}), "never changes")


def test_every_column_of_a_version_is_either_frozen_or_of_its_lifecycle() -> None:
    from registry.freezing import _FROZEN_COLUMNS
    from registry.models.version import LIFECYCLE

    assert {field.column for field in ToolkitVersion._meta.concrete_fields} == {*_FROZEN_COLUMNS, *LIFECYCLE}


def test_every_trigger_is_in_the_database() -> None:
    from registry.freezing import TRIGGERS

    tables = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'O'",
    }
    with connection.cursor() as cursor:
        cursor.execute(tables[connection.vendor])
        present = {name for (name,) in cursor.fetchall()}
    watched = [
        "registry_toolkit",
        "registry_toolkitversion",
        "registry_tool",
        "registry_tool_capabilities",
        "guardian_userobjectpermission",
        "guardian_groupobjectpermission",
        "auth_user",
        "auth_user_groups",
        "auth_group_permissions",
        "auth_user_user_permissions",
    ]
    bumps = {f"{table}_{event}_is_a_new_revision" for table in watched for event in ("insert", "update", "delete")}
    assert bumps <= present
    assert {trigger.name for trigger in TRIGGERS} <= present


def test_a_published_version_moves_only_forward(version: ToolkitVersion) -> None:
    rows = ToolkitVersion.objects.filter(pk=version.pk)
    refused(lambda: rows.update(state="draft"), "forward")
    deprecate(version, by=None)
    refused(lambda: rows.update(state="published"), "forward")
    withdraw(version, by=None, reason="It is wrong.")
    for state in ("draft", "published", "deprecated"):
        refused(partial(rows.update, state=state), "forward")


def test_a_draft_is_neither_deprecated_nor_withdrawn() -> None:
    rows = ToolkitVersion.objects.filter(pk=draft().pk)
    now = timezone.now()
    facts = {"digest": "x", "published_at": now, "deprecated_at": now, "withdrawn_at": now, "withdrawal_reason": "x"}
    for state in ("deprecated", "withdrawn"):
        refused(partial(rows.update, state=state, **facts), "forward")


def test_a_version_starts_as_a_draft() -> None:
    toolkit = Toolkit.objects.create(name="Calculator")
    refused(
        lambda: ToolkitVersion.objects.create(
            toolkit=toolkit, major=1, minor=0, patch=0, state="published", digest="x", published_at=timezone.now()
        ),
        "starts as a draft",
    )


def test_tools_of_a_published_version_stay(version: ToolkitVersion) -> None:
    tool = version.tools.get()
    rows = Tool.objects.filter(pk=tool.pk)
    refused(lambda: rows.update(risk=4), "never change")
    refused(lambda: rows.update(version=draft("Other")), "never change")
    refused(lambda: rows._raw_delete("default"), "never change")
    refused(lambda: Tool.objects.bulk_create([Tool(version=version, name="New")]), "never change")
    other = draft("Third", "1.0.0", {"name": "Move"}).tools.get()
    refused(lambda: Tool.objects.filter(pk=other.pk).update(version=version), "never change")


def test_capabilities_of_a_published_tool_stay(version: ToolkitVersion) -> None:
    tool = version.tools.get()
    more = Capability.objects.create(name="data.write")
    refused(lambda: tool.capabilities.add(more), "never change")
    refused(lambda: tool.capabilities.clear(), "never change")
    refused(lambda: Tool.capabilities.through.objects.filter(tool=tool).update(capability=more), "never change")
    refused(lambda: tool.capabilities.get().delete(), "never change")
    refused(lambda: Capability.objects.filter(name="data.read").update(name="data.all"), "keeps its name")


def test_a_published_version_is_never_deleted(version: ToolkitVersion) -> None:
    refused(lambda: ToolkitVersion.objects.filter(pk=version.pk).delete())
    refused(lambda: ToolkitVersion.objects.filter(pk=version.pk)._raw_delete("default"), "never deleted|never change")


def test_the_models_refuse_in_words_before_the_database_does(version: ToolkitVersion) -> None:
    tool = version.tools.get()
    for change in (version.save, version.delete, tool.save, tool.delete):
        with pytest.raises(FrozenVersion, match=r"Calculator@1\.0\.0 is published and never changes"):
            change()


def test_raw_sql_is_refused_as_well(version: ToolkitVersion) -> None:
    def change() -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE registry_tool SET input_schema = '{}' WHERE version_id = %s", [version.pk])

    refused(change, "never change")


def test_a_draft_changes_freely_and_can_be_deleted() -> None:
    version = draft("Calculator", "1.0.0", {"capabilities": ["data.read"]})
    tool = version.tools.get()
    tool.title = "Other"
    tool.save()
    tool.capabilities.clear()
    version.title = "Other"
    version.save()
    version.delete()
    assert not Tool.objects.exists()


def test_publishing_needs_a_digest_a_date_and_for_risk_a_second_person() -> None:
    editor = person()
    rows = ToolkitVersion.objects.filter(pk=draft(by=editor).pk)
    now = timezone.now()
    rows.update(digest="")
    refused(lambda: rows.update(state="published", published_at=now), "digest")
    refused(lambda: rows.update(state="published", digest="x"), "date")
    risky = {"state": "published", "digest": "x", "published_at": now, "risk": 3}
    refused(lambda: rows.update(**risky), "second_person")
    refused(lambda: rows.update(**risky, reviewed_by=editor), "second_person")
    assert rows.update(**risky, reviewed_by=person()) == 1


def test_a_withdrawal_without_a_reason_is_refused(version: ToolkitVersion) -> None:
    rows = ToolkitVersion.objects.filter(pk=version.pk)
    refused(lambda: rows.update(state="withdrawn", withdrawn_at=timezone.now()), "why")
    refused(lambda: rows.update(state="deprecated"), "since_when")


def test_a_toolkit_has_each_version_once_and_no_negative_numbers() -> None:
    toolkit = Toolkit.objects.create(name="Calculator")
    bare_version(toolkit)
    refused(lambda: bare_version(toolkit))
    refused(lambda: bare_version(toolkit, major=-1))


@pytest.mark.parametrize(
    "name",
    ["pаy", "Delete_File.", "", "1Add", "_add", "Add\n", "Ad\u200bd", "ｄｅｌｅｔｅ", "A-B", "A B", "naïve"],
    ids=ascii,
)
def test_a_name_that_could_pass_for_another_is_refused(name: str) -> None:
    version = bare_version(Toolkit.objects.create(name="Calculator"))
    refused(lambda: Toolkit.objects.create(name=name))
    refused(lambda: bare_tool(version, name))


def test_names_differ_by_more_than_case() -> None:
    version = bare_version(Toolkit.objects.create(name="Files"))
    bare_tool(version, "delete_file")
    refused(lambda: Toolkit.objects.create(name="FILES"))
    refused(lambda: bare_tool(version, "Delete_File"))


def test_two_toolkits_never_share_a_flat_name() -> None:
    one = bare_version(Toolkit.objects.create(name="A_B"))
    other = bare_version(Toolkit.objects.create(name="A"))
    tool = bare_tool(one, "C")
    refused(lambda: bare_tool(other, "B_C"), "flat name")
    refused(lambda: bare_tool(other, "b_c"), "flat name")
    renamed = bare_tool(other, "D")
    refused(lambda: Tool.objects.filter(pk=renamed.pk).update(name="B_C"), "flat name")
    assert FlatName.objects.get(name="a_b_c").toolkit == one.toolkit
    tool.delete()
    bare_tool(other, "B_C")  # nobody uses the name any more
    refused(lambda: bare_tool(one, "C"), "flat name")


def test_versions_of_one_toolkit_share_their_flat_names() -> None:
    toolkit = Toolkit.objects.create(name="Calculator")
    bare_tool(bare_version(toolkit, 1), "Add")
    bare_tool(bare_version(toolkit, 2), "add")
    assert FlatName.objects.get().name == "calculator_add"


def test_a_flat_name_has_at_most_64_characters() -> None:
    version = bare_version(Toolkit.objects.create(name="T" * 32))
    bare_tool(version, "a" * 31)
    refused(lambda: bare_tool(version, "a" * 32), "64")


def test_a_toolkit_with_versions_keeps_its_name() -> None:
    toolkit = Toolkit.objects.create(name="Calculator")
    Toolkit.objects.filter(pk=toolkit.pk).update(name="Sums")
    bare_version(toolkit)
    refused(lambda: Toolkit.objects.filter(pk=toolkit.pk).update(name="Other"), "keeps its name")


def test_a_source_never_changes() -> None:
    toolkit = Toolkit.objects.create(name="Calculator")
    source = Source.objects.create(toolkit=toolkit, digest="sha256:x", content=b"x", size=1)
    refused(lambda: Source.objects.filter(pk=source.pk).update(content=b"y"), "never changes")


def test_json_keeps_its_order_and_its_numbers() -> None:
    version = bare_version(Toolkit.objects.create(name="Calculator"))
    schema = {"type": "object", "properties": {"zebra": {"minimum": 1.0, "maximum": 1e22}, "ant": {"const": None}}}
    tool = bare_tool(version, "Add", input_schema=schema, output_schema=None)
    tool.refresh_from_db()
    assert repr(tool.input_schema) == repr(schema)
    assert tool.output_schema is None
