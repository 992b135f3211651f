"""Access requests in the admin: what agents ask for, given or refused with one word to them."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import ChoicesFieldListFilter, RelatedOnlyFieldListFilter
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import NoReverseMatch, URLPattern, reverse
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget

from policy import accessrequests, granting
from policy.accessrequests import AccessRequestError
from policy.models import AccessRequest
from registry import access
from registry.actors import who
from registry.admin.guarded import ReadOnly
from registry.admin.pages import PagesAdmin, number, only

STATES = {"pending": "warning", "granted": "success", "refused": "danger"}


class GrantForm(forms.Form):
    """A word to whoever asked."""

    note = forms.CharField(max_length=2_000, required=False, widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}))


class RefusalForm(forms.Form):
    """Why not."""

    note = forms.CharField(
        max_length=2_000, label="Why not?", widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "autofocus": True})
    )


@admin.register(AccessRequest)
class AccessRequestAdmin(ReadOnly, PagesAdmin):
    """Requests about toolkits that one owns or publishes, and those of one's own agents."""

    empty_text = (
        "No request yet, or none that is yours to see. A denied agent makes one with POST /api/access-requests/."
    )
    list_display = ["what", "agent", "toolkit", "state_label", "requested_by", "created_at", "decided_by"]
    list_display_links = ["what"]
    list_filter = [
        ("state", ChoicesFieldListFilter),
        ("toolkit", RelatedOnlyFieldListFilter),
        ("agent", RelatedOnlyFieldListFilter),
    ]
    list_select_related = ["agent", "toolkit", "decided_by"]
    search_fields = ["agent__name", "toolkit__name", "reason"]
    search_help_text = "Search agents, toolkits and reasons"
    list_per_page = 50
    actions = None

    def get_urls(self) -> list[URLPattern]:
        return [self.step("grant", self.grant_view), self.step("refuse", self.refuse_view), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[AccessRequest]:
        return accessrequests.visible_to(who(request)).order_by("-id")

    @display(description="Request", ordering="id")
    def what(self, asked: AccessRequest) -> str:
        return f"#{asked.pk} {asked.permission}"

    @display(description="State", ordering="state", label=STATES)
    def state_label(self, asked: AccessRequest) -> tuple[str, str]:
        return asked.state, asked.get_state_display()

    # Pages

    @only("GET", "HEAD")
    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        asked, user = self._asked(request, object_id), who(request)
        is_pending = asked.state == AccessRequest.State.PENDING
        may_refuse = is_pending and granting.may_give(user, asked.permission, asked.toolkit)
        obstacle = granting.obstacle(user, asked.permission, asked.toolkit, asked.agent) if is_pending else ""
        return self.page(
            request,
            "policy/access_request.html",
            f"{asked.agent.name} asks to {asked.permission} {asked.toolkit.name}",
            asked=asked,
            original=asked,
            kind=STATES[asked.state],
            call_page=_call_page(asked),
            sees_toolkit=access.visible_toolkits(user).filter(pk=asked.toolkit_id).exists(),
            may_grant=is_pending and not obstacle,
            may_refuse=may_refuse,
            obstacle=obstacle if may_refuse else "",
        )

    @only("GET", "HEAD", "POST")
    def grant_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        asked = self._asked(request, object_id)
        if refusal := granting.obstacle(who(request), asked.permission, asked.toolkit, asked.agent):
            raise PermissionDenied(refusal)
        form = GrantForm(request.POST if request.method == "POST" else None)
        explanation = (
            f"{asked.agent.name} may then {asked.permission} every tool of {asked.toolkit.name} that policy allows."
        )
        return self._step(request, asked, form, "Grant", accessrequests.grant, explanation=explanation)

    @only("GET", "HEAD", "POST")
    def refuse_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        asked = self._asked(request, object_id)
        if not granting.may_give(who(request), asked.permission, asked.toolkit):
            raise PermissionDenied(granting.obstacle(who(request), asked.permission, asked.toolkit, asked.agent))
        form = RefusalForm(request.POST if request.method == "POST" else None)
        return self._step(request, asked, form, "Refuse", accessrequests.refuse, variant="danger")

    def _step(
        self, request: HttpRequest, asked: AccessRequest, form: forms.Form, button: str, decide: Any, **more: Any
    ) -> HttpResponse:
        if form.is_bound and form.is_valid():
            try:
                settled = decide(asked, by=who(request), note=form.cleaned_data["note"])
                messages.success(request, f"The request of {asked.agent.name} is {settled.state}.")
            except AccessRequestError as error:
                messages.error(request, error.message)
            return HttpResponseRedirect(_change_page(asked))
        title = f"{button}: {asked.agent.name} asks to {asked.permission} {asked.toolkit.name}"
        context = {"form": form, "button": button, "back": _change_page(asked), "original": asked, **more}
        return self.page(request, "registry/step.html", title, **context)

    def _asked(self, request: HttpRequest, object_id: str) -> AccessRequest:
        found: AccessRequest = get_object_or_404(self.get_queryset(request), pk=number(object_id))
        return found


def _change_page(asked: AccessRequest) -> str:
    return reverse("admin:policy_accessrequest_change", args=[asked.pk])


def _call_page(asked: AccessRequest) -> str:
    """The timeline of the denied call; who may not see that call is told so there."""
    if asked.call is None:
        return ""
    try:
        return reverse("subject-call", args=[asked.call])
    except NoReverseMatch:
        return ""
