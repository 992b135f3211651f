"""What the database itself keeps true about versions, tools and names, whoever writes."""

from registry.models.flatname import MAX_FLAT_NAME
from registry.models.version import LIFECYCLE
from registry.triggers import EVENTS, Reaction, Refusal, Trigger, differs

_FROZEN_COLUMNS = (
    "id",
    "toolkit_id",
    "major",
    "minor",
    "patch",
    "title",
    "description",
    "digest",
    "risk",
    "source_id",
    "created_at",
    "created_by_id",
    "edited_by_id",
    "review_requested_at",
    "reviewed_by_id",
    "published_at",
    "published_by_id",
)
assert not LIFECYCLE & set(_FROZEN_COLUMNS)

_FORWARD = (
    "NEW.state = OLD.state OR (OLD.state = 'draft' AND NEW.state = 'published')"
    " OR (OLD.state = 'published' AND NEW.state IN ('deprecated', 'withdrawn'))"
    " OR (OLD.state = 'deprecated' AND NEW.state = 'withdrawn')"
)
_NOT_A_DRAFT = "(SELECT state FROM registry_toolkitversion WHERE id = {row}.version_id {{lock}}) <> 'draft'"
_NOT_A_DRAFT_OF_A_TOOL = (
    "(SELECT v.state FROM registry_toolkitversion v JOIN registry_tool t ON t.version_id = v.id"
    " WHERE t.id = {row}.tool_id {{lock}}) <> 'draft'"
)
_TOOLS_STAY = "The tools of a published version never change; make a new version instead."

VERSION_TRIGGERS: tuple[Trigger, ...] = (
    Refusal(
        name="a_version_starts_as_a_draft",
        table="registry_toolkitversion",
        event="INSERT",
        when="NEW.state <> 'draft'",
        message="A version starts as a draft.",
    ),
    Refusal(
        name="a_published_version_stays_as_it_is",
        table="registry_toolkitversion",
        event="UPDATE",
        when=f"OLD.state <> 'draft' AND {differs(*_FROZEN_COLUMNS)}",
        message="A published version never changes; make a new version instead.",
    ),
    Refusal(
        name="a_version_moves_only_forward",
        table="registry_toolkitversion",
        event="UPDATE",
        when=f"NOT ({_FORWARD})",
        message="A version moves only forward: draft, published, deprecated, withdrawn.",
    ),
    Refusal(
        name="a_published_version_is_not_deleted",
        table="registry_toolkitversion",
        event="DELETE",
        when="OLD.state <> 'draft'",
        message="A published version is never deleted; withdraw it instead.",
    ),
)


def _guarded(table: str, condition: str) -> list[Trigger]:
    """Refusals of every change to a table whose rows belong to a version."""
    rows = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}
    return [
        Refusal(
            name=f"{table}_once_published_refuses_{event.lower()}",
            table=table,
            event=event,
            when="(" + " OR ".join(condition.format(row=row) for row in rows[event]) + ")",
            message=_TOOLS_STAY,
        )
        for event in EVENTS
    ]


TOOL_TRIGGERS: tuple[Trigger, ...] = (
    *_guarded("registry_tool", _NOT_A_DRAFT),
    *_guarded("registry_tool_capabilities", _NOT_A_DRAFT_OF_A_TOOL),
)

NAME_TRIGGERS: tuple[Trigger, ...] = (
    Refusal(
        name="a_toolkit_with_versions_keeps_its_name",
        table="registry_toolkit",
        event="UPDATE",
        when="OLD.name <> NEW.name AND EXISTS (SELECT 1 FROM registry_toolkitversion WHERE toolkit_id = OLD.id)",
        message="A toolkit with versions keeps its name.",
    ),
    Refusal(
        name="a_capability_keeps_its_name",
        table="registry_capability",
        event="UPDATE",
        when="OLD.name <> NEW.name",
        message="A capability keeps its name; tools were published with it.",
    ),
    Refusal(
        name="a_source_stays_as_it_is",
        table="registry_source",
        event="UPDATE",
        when=differs("id", "toolkit_id", "digest", "content", "size"),
        message="A source is named by its digest and never changes.",
    ),
)

_FLAT = "lower(k.name || '_' || NEW.name)"
_KIT = "registry_toolkitversion v JOIN registry_toolkit k ON k.id = v.toolkit_id WHERE v.id = NEW.version_id"
_TAKEN = "This flat name (Toolkit_Tool) belongs to a tool of another toolkit."
_TOO_LONG = f"A flat name (Toolkit_Tool) has at most {MAX_FLAT_NAME} characters."
_STILL_USED = (
    "EXISTS (SELECT 1 FROM registry_tool t JOIN registry_toolkitversion v2 ON v2.id = t.version_id"
    " JOIN registry_toolkit k2 ON k2.id = v2.toolkit_id"
    " WHERE k2.id = {holder} AND lower(k2.name || '_' || t.name) = {flat})"
)

_SQLITE_CLAIM = (
    f"SELECT RAISE(ABORT, '{_TOO_LONG}') FROM {_KIT} AND length({_FLAT}) > {MAX_FLAT_NAME};"
    f"INSERT INTO registry_flatname (name, toolkit_id) SELECT {_FLAT}, k.id FROM {_KIT} ON CONFLICT (name) DO UPDATE"
    " SET toolkit_id = excluded.toolkit_id WHERE NOT "
    + _STILL_USED.format(holder="registry_flatname.toolkit_id", flat="registry_flatname.name")
    + ";"
    f"SELECT RAISE(ABORT, '{_TAKEN}') FROM {_KIT}"
    f" AND k.id <> (SELECT toolkit_id FROM registry_flatname WHERE name = {_FLAT});"
)
# The holder's row is locked before it is judged: who else claims the name waits here until this transaction ends.
_POSTGRESQL_CLAIM = (
    "DECLARE flat text; kit bigint; holder bigint; BEGIN "
    f"SELECT {_FLAT}, k.id INTO flat, kit FROM {_KIT};"
    f"IF length(flat) > {MAX_FLAT_NAME} THEN RAISE EXCEPTION USING ERRCODE = 'check_violation',"
    f" MESSAGE = '{_TOO_LONG}'; END IF;"
    "INSERT INTO registry_flatname (name, toolkit_id) VALUES (flat, kit) ON CONFLICT (name) DO NOTHING;"
    "SELECT toolkit_id INTO holder FROM registry_flatname WHERE name = flat FOR UPDATE;"
    "IF holder <> kit THEN"
    f" IF {_STILL_USED.format(holder='holder', flat='flat')} THEN"
    f" RAISE EXCEPTION USING ERRCODE = 'unique_violation', MESSAGE = '{_TAKEN}'; END IF;"
    " UPDATE registry_flatname SET toolkit_id = kit WHERE name = flat;"
    "END IF; END;"
)

FLAT_NAME_TRIGGERS: tuple[Trigger, ...] = tuple(
    Reaction(
        name=f"a_tool_claims_its_flat_name_on_{event.lower()}",
        table="registry_tool",
        event=event,
        when="" if event == "INSERT" else differs("name", "version_id"),
        sqlite_body=_SQLITE_CLAIM,
        postgresql_body=_POSTGRESQL_CLAIM,
    )
    for event in ("INSERT", "UPDATE")
)

TRIGGERS: tuple[Trigger, ...] = (*VERSION_TRIGGERS, *TOOL_TRIGGERS, *NAME_TRIGGERS, *FLAT_NAME_TRIGGERS)
