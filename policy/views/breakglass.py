"""Calls that people let run against policy: what was said then, and what others say of it now."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Case, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from policy import breakglass
from policy.models import BreakGlass
from policy.standing import visible_glass
from policy.views.deciding import MAX_REASON
from policy.views.frame import for_people, page
from registry.actors import who

PER_PAGE = 30


@for_people("GET", "HEAD")
def listing(request: HttpRequest) -> HttpResponse:
    """Those that wait for a review first."""
    user = who(request)
    is_reviewed = Case(When(verdict="", then=Value(0)), default=Value(1))
    shown = Paginator(visible_glass(user).order_by(is_reviewed, "-pk"), PER_PAGE).get_page(request.GET.get("page"))
    may_review = user.has_perm(breakglass.PERMISSION)
    rows = [{"use": use, "may_review": may_review and not use.verdict and use.person_id != user.pk} for use in shown]
    return page(request, "policy/break_glass.html", "Approvals", rows=rows, shown=shown)


@for_people("POST")
def review(request: HttpRequest, id: int) -> HttpResponse:
    """One verdict per use, never by who did it."""
    user = who(request)
    use = visible_glass(user).filter(pk=id).first()
    if use is None:
        raise Http404
    verdict, note = request.POST.get("verdict", ""), request.POST.get("note", "")[:MAX_REASON]
    if verdict not in BreakGlass.Verdict.values:
        messages.error(request, "Say whether it was justified.")
        return redirect("inbox-glass")
    try:
        breakglass.review(use, by=user, verdict=verdict, note=note)
    except breakglass.BreakGlassError as error:
        messages.error(request, f"{error.message}.")
    else:
        messages.success(request, "Your review is on record.")
    return redirect("inbox-glass")
