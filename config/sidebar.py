"""The portal's navigation: what is this person's work, grouped by the question it answers."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from execution.portal import publish
from execution.portal.needs import OPERATES
from execution.portal.standing import Standing, standing
from policy.views.frame import pending_for

Concerns = Callable[[Standing], bool]


def _everybody(who: Standing) -> bool:
    return True


def _decides(who: Standing) -> bool:
    return who.decides or who.owns_agents or who.may("audit") or who.has("policy.break_glass")


def _toolkits(who: Standing) -> bool:
    return who.sees_toolkits


def _calls(who: Standing) -> bool:
    return who.sees_calls


def _runs(who: Standing) -> bool:
    """Whoever keeps tools running: those who publish them, and operators."""
    return who.publishes or who.has(OPERATES)


def _requests(who: Standing) -> bool:
    return who.publishes or who.owns_agents


def _agents(who: Standing) -> bool:
    return who.publishes or who.owns_agents or who.has("policy.view_agent", "policy.add_agent", OPERATES)


def _permissions(who: Standing) -> bool:
    """Whoever gives permissions or reads them, and whoever may ask why."""
    return who.publishes or who.may("audit") or who.owns_agents or who.has("policy.edit_policy", "audit.view_event")


def _events(who: Standing) -> bool:
    return who.sees_events


def _holds(*permissions: str) -> Concerns:
    return lambda who: who.has(*permissions)


_GROUPS: tuple[tuple[str, tuple[tuple[str, str, str, Concerns], ...]], ...] = (
    ("", (("Home", "home", "portal-home", _everybody),)),
    (
        "Decisions",
        (
            ("Approvals", "inbox", "approvals", _decides),
            ("Policy", "gavel", "policy", _holds("policy.view_revision", "policy.edit_policy")),
        ),
    ),
    (
        "Registry",
        (
            ("Catalogue", "menu_book", "portal-catalogue", _toolkits),
            ("Publish", "publish", "portal-publish", publish.concerns),
            ("Toolkits", "deployed_code", "admin:registry_toolkit_changelist", _toolkits),
            ("Versions", "history", "admin:registry_toolkitversion_changelist", _toolkits),
            ("Tools", "build", "admin:registry_tool_changelist", _toolkits),
            ("Capabilities", "bolt", "admin:registry_capability_changelist", _toolkits),
        ),
    ),
    (
        "Access",
        (
            ("Agents", "smart_toy", "portal-agents", _agents),
            ("Permissions", "shield_person", "portal-permissions", _permissions),
            (
                "Secrets",
                "key",
                "portal-secrets",
                _holds("execution.view_secret", "execution.change_secret"),
            ),
            ("Access requests", "front_hand", "access-requests", _requests),
            ("Users", "person", "admin:auth_user_changelist", _holds("auth.view_user")),
            ("Groups", "group", "admin:auth_group_changelist", _holds("auth.view_group")),
        ),
    ),
    (
        "Evidence",
        (
            ("Search", "manage_search", "portal-search", lambda who: _calls(who) or _events(who)),
            ("Calls", "call_made", "admin:execution_call_changelist", _calls),
            ("Attempts", "replay", "admin:execution_attempt_changelist", _calls),
            ("Callbacks", "phone_callback", "admin:execution_callback_changelist", _calls),
            ("Audit events", "receipt_long", "admin:audit_event_changelist", _events),
            ("Seals", "verified_user", "admin:audit_seal_changelist", _holds("audit.view_event")),
            ("Evidence packs", "folder_zip", "portal-packs", _events),
        ),
    ),
    (
        "Running",
        (
            ("Breakers", "power_off", "admin:execution_breaker_changelist", _runs),
            ("Demotions", "trending_down", "admin:execution_demotion_changelist", _runs),
            ("Upstream pins", "push_pin", "admin:execution_pin_changelist", _runs),
            ("Outside workers", "engineering", "admin:execution_session_changelist", _runs),
            ("Notices", "outgoing_mail", "admin:policy_notice_changelist", _holds("policy.view_notice")),
        ),
    ),
    ("Reference", (("API", "api", "api-docs", _everybody),)),
)

_BADGES = {"approvals": pending_for}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Groups of links; a page that is not installed, or not this person's work, is left out."""
    me = standing(request)
    groups = []
    for title, pages in _GROUPS if me is not None else ():
        items = [
            {
                "title": name,
                "icon": icon,
                "link": link,
                "badge": address in _BADGES and _BADGES[address](request),
                "active": request.path == link if address == "portal-home" else request.path.startswith(link),
            }
            for name, icon, address, concerns in pages
            if me is not None and concerns(me) and (link := _link(address))
        ]
        if items:
            groups.append({"title": title, "separator": bool(title), "items": items})
    return groups


def _link(address: str) -> str:
    try:
        return reverse(address)
    except NoReverseMatch:
        return ""
