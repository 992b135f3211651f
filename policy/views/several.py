"""Before several questions are decided at once: a look at each of them, and one reason for all."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from policy import approvals
from policy.views.cards import Card, cards_of
from policy.views.deciding import MAX_AT_ONCE, MAX_REASON, chosen
from policy.views.frame import for_people, page
from registry.actors import who

BRIEF = 600  # characters of arguments for each
ANSWERS = {"approve": "Approve", "deny": "Deny"}


@for_people("POST")
def several(request: HttpRequest) -> HttpResponse:
    """Lists what would be decided, and what cannot be any more; decides nothing."""
    user, named = who(request), chosen(request)
    answer = request.POST.get("answer", "")
    if answer not in ANSWERS or not named:
        return redirect("approvals")
    found = list(approvals.concerning(user).filter(pk__in=named[:MAX_AT_ONCE]).order_by("decide_by", "pk"))
    cards, _ = cards_of(found, user, most=MAX_AT_ONCE, limit=BRIEF)
    mine = [card for card in cards if card.can_decide]
    context = {
        "mine": mine,
        "lost": [card for card in cards if not card.can_decide],
        "count": _questions(mine),
        "answer": answer,
        "verb": ANSWERS[answer],
        "reason": request.POST.get("reason", "")[:MAX_REASON],
        "too_many": len(named) > MAX_AT_ONCE,
        "most": MAX_AT_ONCE,
    }
    if request.GET.get("part") == "1":
        return render(request, "policy/inbox_confirm_form.html", context)
    return page(request, "policy/inbox_confirm.html", "Approvals", **context)


def _questions(cards: list[Card]) -> int:
    return sum(len(card.ids) for card in cards)
