"""What was decided: by this person, or by anyone whose answers they may see."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse

from policy import approvals
from policy.models import Approval, Vote
from policy.standing import settling_vote
from policy.views.frame import for_people, page
from policy.views.inbox import matching
from policy.views.words import STATES
from registry.actors import who

PER_PAGE = 30
ANSWERS = {"": "Every answer", "approve": "Approved", "deny": "Denied"}


@for_people("GET", "HEAD")
def history(request: HttpRequest) -> HttpResponse:
    """The newest first, narrowed by words and by the answer."""
    user, search = who(request), request.GET.get("q", "").strip()[:200]
    is_all, answer = request.GET.get("who") == "all", request.GET.get("answer", "")
    answer = answer if answer in ANSWERS else ""
    seen = approvals.concerning(user)
    votes = Vote.objects.filter(**({"answer": answer} if answer else {}))
    if not is_all:
        found = seen.filter(pk__in=votes.filter(person=user).values("approval"))
    else:
        found = seen.exclude(state=Approval.State.PENDING)
        found = found.filter(pk__in=votes.values("approval")) if answer else found
    pages = Paginator(matching(found, search).prefetch_related("votes__person").order_by("-pk"), PER_PAGE)
    shown = pages.get_page(request.GET.get("page"))
    rows = [_row(each, user) for each in shown]
    asked = {"search": search, "answer": answer, "answers": ANSWERS.items(), "is_all": is_all}
    return page(request, "policy/inbox_history.html", "Approvals", rows=rows, shown=shown, **asked)


def _row(approval: Approval, user: User) -> dict[str, Any]:
    """One settled question: the answer that counted, one's own if that was another, and how long it took."""
    vote = settling_vote(approval)
    own = next((each for each in approval.votes.all() if each.person_id == user.pk), None)
    told = own or vote
    took = told.at - approval.created_at if told else None
    return {
        "approval": approval,
        "vote": vote,
        "own": own,
        "tone": STATES[approval.state],
        "at": told.at if told else approval.ended_at,
        "took": in_words(took) if took else "",
    }


def in_words(took: timedelta) -> str:
    """A stretch of time in its two largest units."""
    seconds = max(0, round(took.total_seconds()))
    parts = ((seconds // 86_400, "d"), (seconds // 3_600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s"))
    first = next((place for place, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"
