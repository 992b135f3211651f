"""The portal's navigation: what this person can open, grouped by the question it answers."""

from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from policy.views.inbox import pending_for

_GROUPS = (
    (
        "Decisions",
        (
            ("Approvals", "inbox", "approvals", ""),
            ("Policy", "gavel", "policy", "policy.view_revision policy.edit_policy"),
        ),
    ),
    (
        "Registry",
        (
            ("Toolkits", "deployed_code", "admin:registry_toolkit_changelist", ""),
            ("Versions", "history", "admin:registry_toolkitversion_changelist", ""),
            ("Tools", "build", "admin:registry_tool_changelist", ""),
            ("Capabilities", "bolt", "admin:registry_capability_changelist", ""),
        ),
    ),
    (
        "Access",
        (
            ("Agents", "smart_toy", "admin:policy_agent_changelist", ""),
            ("Secrets", "key", "admin:execution_secret_changelist", "execution.view_secret execution.change_secret"),
            ("Access requests", "front_hand", "admin:policy_accessrequest_changelist", ""),
            ("Users", "person", "admin:auth_user_changelist", "auth.view_user"),
            ("Groups", "group", "admin:auth_group_changelist", "auth.view_group"),
        ),
    ),
    (
        "Evidence",
        (
            ("Calls", "call_made", "admin:execution_call_changelist", ""),
            ("Attempts", "replay", "admin:execution_attempt_changelist", ""),
            ("Callbacks", "phone_callback", "admin:execution_callback_changelist", ""),
            ("Breakers", "power_off", "admin:execution_breaker_changelist", ""),
            ("Outside workers", "engineering", "admin:execution_session_changelist", ""),
            ("Demotions", "trending_down", "admin:execution_demotion_changelist", ""),
            ("Upstream pins", "push_pin", "admin:execution_pin_changelist", ""),
            ("Notices", "outgoing_mail", "admin:policy_notice_changelist", "policy.view_notice"),
            ("Audit events", "receipt_long", "admin:audit_event_changelist", ""),
            ("Seals", "verified_user", "admin:audit_seal_changelist", "audit.view_event"),
        ),
    ),
    ("Reference", (("API", "api", "api-docs", ""),)),
)

_BADGES = {"approvals": pending_for}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Groups of links; a page that is not installed or not permitted is left out."""
    groups = []
    for title, pages in _GROUPS:
        items = [
            {
                "title": name,
                "icon": icon,
                "link": link,
                "badge": address in _BADGES and _BADGES[address](request),
                "active": request.path.startswith(link),
            }
            for name, icon, address, needed in pages
            if (link := _link(address)) and (not needed or any(map(request.user.has_perm, needed.split())))
        ]
        if items:
            groups.append({"title": title, "separator": True, "items": items})
    return groups


def _link(address: str) -> str:
    try:
        return reverse(address)
    except NoReverseMatch:
        return ""
