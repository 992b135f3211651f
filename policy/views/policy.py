"""The policy for people: the live rules, every revision, and what one changes against another."""

from typing import Any

from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from policy import policyfile, readers, revisions, rulechecks
from policy.models import Difference, Revision
from policy.rulechanges import Change
from policy.views.portal import STATES, found, page, policy_page, shown
from registry import sidebyside
from registry.actors import who

PER_PAGE = 30
KINDS = {"added": "success", "removed": "danger", "changed": "warning", "moved": "info"}


@policy_page(readers.may_read, "GET", "HEAD")
def live(request: HttpRequest) -> HttpResponse:
    """The rules that count now, in their order; what counts without any is told where there are none."""
    revision = revisions.live()
    rules = [shown(rule) for rule in revisions.rules_of(revision)] if revision else []
    newest = Revision.objects.filter(state=Revision.State.DRAFT).first()
    has_any = Revision.objects.exists()
    context: dict[str, Any] = {"revision": revision, "rules": rules, "draft": newest, "has_any": has_any}
    return page(request, "policy/policy_live.html", "Policy", tab="policy", **context)


@policy_page(readers.may_read, "GET", "HEAD")
def listing(request: HttpRequest) -> HttpResponse:
    """Every revision, the newest first."""
    every = Revision.objects.select_related("created_by", "activated_by").order_by("-number")
    shown_page = Paginator(every, PER_PAGE).get_page(request.GET.get("page"))
    rows = [{"revision": revision, "kind": STATES[revision.state]} for revision in shown_page]
    return page(
        request, "policy/policy_revisions.html", "Policy revisions", tab="policy-revisions", rows=rows, pages=shown_page
    )


@policy_page(readers.may_read, "GET", "HEAD")
def revision(request: HttpRequest, id: int) -> HttpResponse:
    """One revision, its rules, and the steps that this person can take with it."""
    row = found(id)
    context: dict[str, Any] = {
        "number_text": str(row.number),
        "kind": STATES[row.state],
        "differences": Difference.objects.filter(shadow_revision=row.number).count(),
        **laid_out(row, who(request)),
    }
    return page(
        request, "policy/policy_revision.html", f"Policy revision {row.number}", tab="policy-revisions", **context
    )


@policy_page(readers.may_read, "GET", "HEAD")
def difference(request: HttpRequest, id: int) -> HttpResponse:
    """What a revision changes: rule by rule as sentences, and its file side by side with the other's."""
    new, named = found(id), request.GET.get("to", "live")
    old = _older(named)
    others = Revision.objects.exclude(number=new.number).order_by("-number")[:200]
    context: dict[str, Any] = {
        "revision": new,
        "old": old,
        "named": named,
        "others": others,
        "old_name": f"revision {old.number}" if old else "the defaults",
        **compared(old, new),
    }
    title = f"What revision {new.number} changes"
    return page(request, "policy/policy_difference.html", title, tab="policy-revisions", **context)


@policy_page(readers.may_read, "GET", "HEAD")
def export(request: HttpRequest, id: int) -> HttpResponse:
    """The revision as a policy file, which imports to the same rules."""
    row = found(id)
    text = policyfile.written(revisions.rules_of(row), note=row.note)
    name = {"Content-Disposition": f'attachment; filename="policy-{row.number}.yaml"'}
    return HttpResponse(text, content_type="application/yaml; charset=utf-8", headers=name)


def laid_out(row: Revision, user: User) -> dict[str, Any]:
    """A revision's rules with what each changes against the live ones; the part of a draft's page that moves."""
    rules, now = revisions.rules_of(row), revisions.live()
    changes = revisions.difference(revisions.rules_of(now) if now else [], rules) if row != now else []
    kinds = {change.name: change.kind for change in changes}
    told = [shown(rule) for rule in rules]
    for one in told:
        kind = kinds.get(one["rule"].name, "")
        one |= {"change": {"added": "new"}.get(kind, kind), "change_label": KINDS.get(kind, "")}
    return {
        "revision": row,
        "rules": told,
        "live": now,
        "changes": [_told(change) for change in changes],
        "warnings": rulechecks.warnings(rules) if row.is_draft else [],
        "digest": row.digest or revisions.digest_of(rules),
        "may_arrange": row.is_draft and not row.is_shadow and readers.may_write(user),
    }


def compared(old: Revision | None, new: Revision) -> dict[str, Any]:
    """Two revisions for a template; no old one means the defaults."""
    before, after = revisions.rules_of(old) if old else [], revisions.rules_of(new)
    return {
        "changes": [_told(change) for change in revisions.difference(before, after)],
        "lines": sidebyside.rows(policyfile.written(before), policyfile.written(after)),
    }


def address(revision: Revision) -> str:
    return reverse("subject-policy", args=[revision.number])


def _told(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "label": KINDS[change.kind],
        "name": change.name,
        "before": shown(change.before) if change.before else None,
        "after": shown(change.after) if change.after else None,
    }


def _older(named: str) -> Revision | None:
    if named == "live":
        return revisions.live()
    if not (named.isascii() and named.isdecimal() and len(named) < 10):
        raise Http404
    return found(int(named)) if int(named) else None
