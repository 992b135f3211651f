"""A tool's page: what it does and takes, what changed, who uses it and how, how to call it, and a try."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from execution.portal import toolwords
from execution.portal.callers import permitted_agents
from execution.portal.frame import for_people, page
from execution.portal.shelf import PREFERENCE, page_of
from execution.portal.snippets import snippets
from execution.portal.standing import Standing, standing
from execution.portal.statistics import WINDOWS
from execution.portal.tryit import Trial, made_by, panel_of, try_context
from execution.portal.usage import recent, usage
from policy.granting import may_list
from registry import access, sidebyside, yamlwriting
from registry.actors import who
from registry.admin.pages import LABELS
from registry.admin.tool import shown
from registry.compatibility import compare_manifests
from registry.manifests import manifest_of
from registry.manifestshape import Manifest
from registry.models import Tool
from registry.parameters import parameters
from registry.risk import RiskLevel
from registry.toolref import ToolRef

MOST_AGENTS = 50
_HEAVY = ("input_schema", "output_schema", "annotations", "requirements", "runtime", "auth", "icons", "description")


@for_people("GET", "HEAD")
def tool_page(request: HttpRequest, toolkit: str, name: str) -> HttpResponse:
    """The version that was asked for, or the one that stands for the tool."""
    versions = versions_of(request, toolkit, name)
    tool = chosen(versions, request.GET.get("version", ""))
    return shown_page(request, versions, tool, Trial.fresh(tool), _panel(request, versions))


def versions_of(request: HttpRequest, toolkit: str, name: str) -> list[Tool]:
    """The tool in each of its versions that this person may see, the newest first; 404 if there is none."""
    seen = access.visible_tools(who(request)).filter(version__toolkit__name__iexact=toolkit, name__iexact=name)
    newest = seen.select_related("version__toolkit__owner", "version__published_by").defer(*_HEAVY)
    found = list(newest.order_by("-version__major", "-version__minor", "-version__patch"))
    if not found:
        raise Http404
    return found


def chosen(versions: list[Tool], version: str) -> Tool:
    """The tool of this version; without one, the newest that callers get, else the newest of what there is."""
    if version:
        ref = ToolRef.parse(f"Toolkit.Tool@{version}")
        fit = [each for each in versions if ref is not None and ref.version == _numbers(each)]
    else:
        fit = sorted(versions, key=lambda each: PREFERENCE.index(each.version.state))
    if not fit:
        raise Http404
    return Tool.objects.select_related("version__toolkit__owner").prefetch_related("capabilities").get(pk=fit[0].pk)


def shown_page(
    request: HttpRequest,
    versions: list[Tool],
    tool: Tool,
    trial: Trial,
    panel: dict[str, Any] | None,
    *,
    status: int = 200,
) -> HttpResponse:
    """The whole page around a trial."""
    user, toolkit, me = who(request), tool.version.toolkit, standing(request)
    assert me is not None  # for_people saw to it
    is_open, risk = access.may_read_manifest(user, toolkit), RiskLevel(tool.risk)
    window = WINDOWS.get(request.GET.get("window", ""), WINDOWS["30d"])
    keys, name = [each.pk for each in versions], f"{toolkit.name}.{tool.name}"
    used = usage(me, f"{name}@", toolkit.pk, keys, window)
    is_list = isinstance(tool.output_schema, dict)
    context: dict[str, Any] = {
        "tool": tool,
        "name": name,
        "facts": shown(tool, is_open=is_open),
        "powers": [(each.name, toolwords.capability(each.name, each.description)) for each in tool.capabilities.all()],
        "risk_words": toolwords.RISKS[risk],
        "repeating": toolwords.REPEATING[Tool.Idempotency(tool.idempotency)],
        "runtime_words": toolwords.RUNTIMES.get(str(tool.runtime.get("type")), ""),
        "outputs": parameters(tool.output_schema) if is_list else [],
        "versions": [_version(each, tool, used.get("by_version", {})) for each in versions],
        "usage": used,
        "recent": recent(me, keys),
        "callers": _callers(me, tool),
        "snippets": snippets(tool, settings.PLACET_URL),
        "admin_url": reverse("admin:registry_tool_change", args=[tool.pk]) if user.is_staff else "",
        "difference": _difference(request, versions, tool, is_open=is_open),
        **try_context(user, tool, trial, panel),
    }
    return page(request, "portal/tool.html", name, status=status, **context)


def _panel(request: HttpRequest, versions: list[Tool]) -> dict[str, Any] | None:
    """The call that a form without scripts led to; the address names it."""
    try:
        call = made_by(who(request), UUID(request.GET.get("call", "")))
    except ValueError:
        return None
    return panel_of(call) if call is not None and call.tool_id in {each.pk for each in versions} else None


def _version(each: Tool, here: Tool, calls: dict[int, int]) -> dict[str, Any]:
    version = each.version
    return {
        "number": version.version,
        "url": f"{page_of(each)}?version={version.version}",
        "is_here": each.pk == here.pk,
        "state": version.get_state_display(),
        "kind": LABELS[version.state],
        "at": version.published_at,
        "by": version.published_by.get_username() if version.published_by else "",
        "word": version.withdrawal_reason or version.deprecation_note,
        "calls": calls.get(each.pk, 0),
    }


def _callers(me: Standing, tool: Tool) -> dict[str, Any] | None:
    """Who may call it; told to those who may read the toolkit's permissions."""
    toolkit = tool.version.toolkit
    if not may_list(me.user, toolkit):
        return None
    found = list(permitted_agents(toolkit)[: MOST_AGENTS + 1])
    return {
        "agents": found[:MOST_AGENTS],
        "is_more": len(found) > MOST_AGENTS,
        "url": reverse("admin:registry_toolkit_permissions", args=[toolkit.pk]) if me.user.is_staff else "",
    }


def _difference(request: HttpRequest, versions: list[Tool], tool: Tool, *, is_open: bool) -> dict[str, Any] | None:
    """This version beside another one: the verdict for callers, and the lines that differ."""
    others = [each for each in versions if each.pk != tool.pk]
    if not others:
        return None
    asked = request.GET.get("against", "")
    lower = [each for each in others if _numbers(each) < _numbers(tool)]
    old = next((each for each in others if each.version.version == asked), (lower or others)[0])
    before, after = (_alone(each, is_open=is_open) for each in (old, tool))
    verdict = compare_manifests(before, after)
    texts = [yamlwriting.write(each.tools[0].document()) for each in (before, after)]
    return {
        "old": old.version.version,
        "new": tool.version.version,
        "others": [each.version.version for each in others],
        "verdict": verdict,
        "kind": "danger" if verdict.is_breaking else "success",
        "rows": sidebyside.rows(*texts),
    }


def _alone(tool: Tool, *, is_open: bool) -> Manifest:
    """The manifest of one tool; where it runs and with which secret only for those who may read manifests."""
    whole = manifest_of(tool.version)
    (alone,) = (each for each in whole.tools if each.name.lower() == tool.name.lower())
    return replace(whole, tools=(alone if is_open else replace(alone, runtime={}, auth={}),))


def _numbers(tool: Tool) -> tuple[int, int, int]:
    return tool.version.major, tool.version.minor, tool.version.patch
