"""Evidence: the pack about one call or a range, as much of it as the one who asks may see."""

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import IO, Any
from uuid import UUID

from rest_framework.utils.encoders import JSONEncoder

from audit.exports import detail_of
from audit.packfile import PackFile, written
from audit.packing import Packed, pack_events
from execution.api.serializers import CallSerializer
from execution.models import Call
from execution.scope import Scope
from execution.viewer import Viewer
from policy import policyfile, revisions
from policy.models import Revision
from registry.manifesttext import manifest_text
from registry.models import Tool, ToolkitVersion
from registry.risk import RiskLevel

CHUNK = 200

Progress = Callable[[int], None]


class PackedCalls:
    """Which calls, policy revisions and tools the packed events speak of."""

    def __init__(self) -> None:
        self.ids: dict[UUID, None] = {}
        self.revisions: set[int] = set()
        self.tools: set[int] = set()

    def see(self, row: dict[str, Any]) -> None:
        """Called with each event on its way into the pack."""
        if row["subject_kind"] != "call":
            return
        try:
            self.ids[UUID(row["subject_id"])] = None
        except ValueError:
            return  # nobody but a stranger writes such a row, and the proofs say so
        if row["event"] == "call.decided":
            self.judged(detail_of(row["detail"]))

    def judged(self, decision: Any) -> None:
        number = decision.get("revision") if isinstance(decision, dict) else None
        if isinstance(number, int) and 0 < number < 2**31:
            self.revisions.add(number)


def write_pack(file: IO[bytes], scope: Scope, viewer: Viewer, *, on_progress: Progress = lambda done: None) -> Packed:
    """The whole pack, streamed; the same events, seals, calls and rights make the same bytes."""
    about, left_out = PackedCalls(), list[str]()
    with PackFile(file) as pack:
        packed = pack_events(pack, scope.events(viewer), on_event=about.see, on_progress=on_progress)
        _add_calls(pack, about, viewer, left_out, lambda: on_progress(packed.events))
        _add_policy(pack, about, viewer, left_out)
        _add_tools(pack, about, viewer, left_out)
        own = files("audit")
        pack.add("README.txt", own.joinpath("evidence_readme.txt").read_bytes())
        pack.add("verify.py", own.joinpath("verifier.py").read_bytes())
        pack.sign({"scope": scope.told(), **packed.told(), "left_out": left_out})
    return packed


def _add_calls(
    pack: PackFile, about: PackedCalls, viewer: Viewer, left_out: list[str], sign_of_life: Callable[[], None]
) -> None:
    """The calls as the API shows them to people, never the exact answer that only the calling agent gets."""
    shown = 0
    ids = list(about.ids)
    with pack.entry("calls.jsonl") as out:
        for start in range(0, len(ids), CHUNK):
            sign_of_life()
            seen = viewer.calls().filter(pk__in=ids[start : start + CHUNK]).order_by("id")
            for call in seen.select_related("agent", "approval").prefetch_related("attempts"):
                told = CallSerializer(call, context={"request": _Nobody}).data
                about.judged(told["decision"])
                if call.tool_id is not None:
                    about.tools.add(call.tool_id)
                out.write((json.dumps(told, cls=JSONEncoder, separators=(",", ":")) + "\n").encode())
                shown += 1
    if shown < len(ids):
        left_out.append(f"{len(ids) - shown} calls that are gone, or not visible to the one who asked")


class _Nobody:
    """A request of no agent: what people see."""

    auth = None


def _add_policy(pack: PackFile, about: PackedCalls, viewer: Viewer, left_out: list[str]) -> None:
    for number in sorted(about.revisions):
        revision = Revision.objects.filter(number=number).first()
        if revision is None:
            left_out.append(f"policy revision {number}: it is gone")
        elif not viewer.may_read_policy():
            left_out.append(f"the text of policy revision {number}: the one who asked may not read policy")
        else:
            rules = revisions.rules_of(revision)
            pack.add(f"policy/revision-{number}.yaml", policyfile.written(rules, note=revision.note))


def _add_tools(pack: PackFile, about: PackedCalls, viewer: Viewer, left_out: list[str]) -> None:
    """What each called tool was: its digest always, its definition and manifest to those who may read them."""
    tools = Tool.objects.filter(pk__in=about.tools).select_related("version__toolkit").prefetch_related("capabilities")
    seen = set(viewer.tools().filter(pk__in=about.tools).values_list("pk", flat=True))
    told = sorted((_tool(tool, tool.pk in seen) for tool in tools), key=lambda one: str(one["tool_id"]))
    pack.add("tools.json", written(told))
    for version in _versions(tools):
        if viewer.may_read_manifest(version.toolkit):
            pack.add(f"tools/{version}.yaml", manifest_text(version))
        else:
            left_out.append(f"the manifest of {version}: the one who asked may not read it")


def _tool(tool: Tool, is_visible: bool) -> dict[str, Any]:
    fixed = {"tool_id": tool.tool_id, "digest": tool.digest, "version_digest": tool.version.digest}
    if not is_visible:
        return fixed
    return {
        **fixed,
        "title": tool.title,
        "description": tool.description,
        "risk": RiskLevel(tool.risk).name.lower(),
        "capabilities": sorted(capability.name for capability in tool.capabilities.all()),
        "idempotency": tool.idempotency,
        "input": tool.input_schema,
        "output": tool.output_schema,
    }


def _versions(tools: Any) -> Iterator[ToolkitVersion]:
    found = {tool.version_id: tool.version for tool in tools}
    yield from sorted(found.values(), key=str)


def visible_call(id: UUID, viewer: Viewer) -> Call | None:
    """The call, if the viewer may see it."""
    return viewer.calls().filter(pk=id).first()
