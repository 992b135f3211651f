"""The catalogue: every tool that a person may see, once, found by words and filters; the address keeps the question."""

from typing import Any

from django.contrib.auth.models import User
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from guardian.models import GroupObjectPermission, UserObjectPermission

from execution.portal.frame import for_people, page
from execution.portal.shelf import LAYOUTS, PREFERENCE, Question, page_of, tools
from execution.portal.standing import Standing, standing
from execution.portal.toolwords import RUNTIMES
from registry import access
from registry.actors import AGENT, who
from registry.admin.pages import LABELS
from registry.models import Capability, Tool, ToolkitVersion
from registry.risk import RiskLevel


@for_people("GET", "HEAD")
def catalogue(request: HttpRequest) -> HttpResponse:
    """The whole page; while one types, only what was found."""
    question, user = Question.read(request.GET), who(request)
    found = tools(user, question).select_related("version__toolkit__owner").prefetch_related("capabilities")
    pages = Paginator(found, LAYOUTS[question.layout]).get_page(request.GET.get("page"))
    me = standing(request)
    assert me is not None  # for_people saw to it
    context: dict[str, Any] = {
        "question": question,
        "pages": pages,
        "cards": [_card(tool) for tool in pages],
        "layouts": [(name, question.address(layout=name)) for name in LAYOUTS],
        **_paging(question, pages),
    }
    if not pages.paginator.count:
        context |= {"empty": _empty(me, question)}
    if request.headers.get("HX-Request") and not request.headers.get("HX-History-Restore-Request"):
        answer = render(request, "portal/catalogue_found.html", context)
        answer["HX-Replace-Url"] = question.address()
        return answer
    context |= {"choices": _choices(me, question), "publish_url": _publish_url(me)}
    return page(request, "portal/catalogue.html", "Catalogue", **context)


def _card(tool: Tool) -> dict[str, Any]:
    risk, version = RiskLevel(tool.risk), tool.version
    line = (tool.description or tool.title).strip().partition("\n")[0]
    return {
        "tool": tool,
        "url": page_of(tool),
        "name": f"{version.toolkit.name}.{tool.name}",
        "about": line if len(line) <= 200 else f"{line[:199]}…",
        "risk": risk,
        "risk_kind": LABELS[risk.word],
        "state_kind": LABELS[version.state],
        "capabilities": sorted(each.name for each in tool.capabilities.all()),
        "runtime": str(tool.runtime.get("type", "")),
        "owner": version.toolkit.owner.get_username() if version.toolkit.owner else "",
    }


def _paging(question: Question, pages: Page[Tool]) -> dict[str, str]:
    return {
        "previous_url": question.address(page=pages.previous_page_number()) if pages.has_previous() else "",
        "next_url": question.address(page=pages.next_page_number()) if pages.has_next() else "",
    }


def _choices(me: Standing, question: Question) -> list[dict[str, Any]]:
    """What the form offers to narrow by."""
    has_drafts = me.may("publish", "review")
    states = [each for each in PREFERENCE if each != "draft" or has_drafts]
    offered = (
        ("capability", "Capability", [(name, name) for name in _capabilities(me.user)]),
        ("risk", "Risk", [(each.word, each.label) for each in RiskLevel]),
        ("runtime", "Runs as", [(kind, kind) for kind in RUNTIMES]),
        ("owner", "Published by", [(name, name) for name in _owners(me.user)]),
        ("state", "State", [(each, ToolkitVersion.State(each).label) for each in states]),
    )
    return [
        {"name": name, "label": label, "options": options, "chosen": getattr(question, name)}
        for name, label, options in offered
    ]


def _capabilities(user: User) -> list[str]:
    needed = Capability.objects.filter(tools__in=access.visible_tools(user).order_by().values("pk"))
    return list(needed.distinct().values_list("name", flat=True))


def _owners(user: User) -> list[str]:
    """Who answers for one of the toolkits that this person sees: their owners, and who was given to publish them."""
    seen = dict(access.visible_toolkits(user).order_by().values_list("pk", "owner__username"))
    names = {name for name in seen.values() if name}
    on_toolkits = {"permission__content_type__app_label": "registry", "permission__codename": "publish_toolkit"}
    given = (
        UserObjectPermission.objects.filter(**on_toolkits).values_list("user__username", "object_pk"),
        GroupObjectPermission.objects.filter(**on_toolkits).values_list("group__user__username", "object_pk"),
    )
    names |= {name for rows in given for name, key in rows if name and int(key) in seen}
    return sorted(name for name in names if not name.startswith(AGENT))


def _publish_url(me: Standing) -> str:
    """Where a version is published, if this person may and the page is there."""
    if not (me.publishes or me.has("registry.add_toolkit")):
        return ""
    for name in ("portal-publish", "admin:registry_toolkitversion_add"):
        if name.startswith("admin:") and not me.user.is_staff:
            continue
        try:
            return reverse(name)
        except NoReverseMatch:
            continue
    return ""


def _empty(me: Standing, question: Question) -> dict[str, str]:
    """Why there is nothing, and what to do next."""
    if question.is_narrow:
        return {
            "icon": "search_off",
            "heading": "No tool fits all of this",
            "text": "Every word must occur in a name, a description or a parameter. Try fewer words or filters.",
            "url": Question(layout=question.layout).address(),
            "action": "Show every tool",
        }
    if publish := _publish_url(me):
        return {
            "icon": "deployed_code",
            "heading": "No tool is published yet",
            "text": "A toolkit comes with its first version: a manifest, or a Python file with @tool.",
            "url": publish,
            "action": "Publish a toolkit",
        }
    return {
        "icon": "lock_person",
        "heading": "There is no tool that you may see",
        "text": "Ask the owner of a toolkit for the permission to view or call it, or whoever runs Placet for a role.",
        "url": reverse("portal-home"),
        "action": "Go home",
    }
