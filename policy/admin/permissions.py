"""Who may do what with a toolkit: a page with every holder and every permission, written through policy.permissions."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from unfold.decorators import action
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from policy import permissions
from policy.granting import FOR_AGENTS, VERBS, Holder, may_give, may_list
from policy.models import AccessRequest, Agent
from policy.permissions import Held, ImpossiblePermission
from registry import access
from registry.actors import AGENT, who
from registry.admin.pages import number, only
from registry.admin.toolkit import ToolkitAdmin
from registry.models import Toolkit

MEANING = {
    "view": "see it, and read its manifests",
    "call": "call its tools",
    "publish": "write and publish versions",
    "review": "review versions before they are published",
    "approve": "approve calls",
    "audit": "read the evidence of calls",
    "serve": "serve calls as an outside worker",
}
SUGGESTED = 200  # names that the page offers while one types


class GiveForm(forms.Form):
    """Whom to give what."""

    holder = forms.CharField(
        max_length=160,
        label="Whom",
        help_text="user:NAME for a person, group:NAME for a group, agent:NAME for an agent.",
        widget=UnfoldAdminTextInputWidget(attrs={"list": "holders", "placeholder": "user:", "autocomplete": "off"}),
    )
    give = forms.MultipleChoiceField(label="May", widget=UnfoldAdminCheckboxSelectMultipleWidget())

    def __init__(self, verbs: list[str], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["give"].choices = [(verb, f"{verb}: {MEANING[verb]}") for verb in verbs]  # type: ignore[attr-defined]

    def clean_holder(self) -> Holder:
        found = permissions.holder_named(self.cleaned_data["holder"])
        if found is None:
            raise forms.ValidationError("There is nobody of this name. Write user:NAME, group:NAME or agent:NAME.")
        return found


@admin.register(Toolkit)
class PermittedToolkitAdmin(ToolkitAdmin):
    """A toolkit with its permissions and what agents have asked for."""

    actions_detail = ["permissions", "access_requests"]

    def has_permissions_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Whether the buttons are shown; the page asks once more."""
        found = access.visible_toolkits(who(request)).filter(pk=number(str(object_id))).first()
        return found is not None and may_list(who(request), found)

    @action(description="Permissions", url_path="permissions", permissions=["permissions"], icon="key")
    def permissions(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._permissions(request, object_id)

    @action(description="Access requests", url_path="access-requests", permissions=["permissions"], icon="front_hand")
    def access_requests(self, request: HttpRequest, object_id: str) -> HttpResponse:
        toolkit = self._toolkit(request, object_id)
        return HttpResponseRedirect(requests_about(toolkit))

    @only("GET", "HEAD", "POST")
    def _permissions(self, request: HttpRequest, object_id: str) -> HttpResponse:
        toolkit, user = self._toolkit(request, object_id), who(request)
        givable = [verb for verb in VERBS if may_give(user, verb, toolkit)]
        form = GiveForm(givable)
        if request.method == "POST" and "cell" in request.POST:
            return self._clicked(request, toolkit)
        if request.method == "POST":
            form = GiveForm(givable, request.POST)
            if form.is_valid() and self._given(request, toolkit, form):
                return self._back(toolkit)
        waiting = AccessRequest.objects.filter(toolkit=toolkit, state=AccessRequest.State.PENDING).count()
        return self.page(
            request,
            "policy/permissions.html",
            f"Who may do what with {toolkit.name}",
            toolkit=toolkit,
            original=toolkit,
            verbs=[(verb, MEANING[verb]) for verb in VERBS],
            rows=[_row(held, givable) for held in permissions.all_held(toolkit)],
            everywhere=_with_permissions_everywhere(),
            form=form if givable else None,
            suggestions=_suggestions(user, toolkit) if givable else [],
            waiting=waiting,
            requests=requests_about(toolkit),
        )

    def _clicked(self, request: HttpRequest, toolkit: Toolkit) -> HttpResponse:
        """One cell of the table: `give VERB HOLDER` or `take VERB HOLDER`."""
        what, _, rest = request.POST["cell"].partition(" ")
        verb, _, name = rest.partition(" ")
        holder = permissions.holder_named(name)
        if holder is None or what not in ("give", "take"):
            raise Http404
        change = permissions.give if what == "give" else permissions.take
        try:
            if change(toolkit, verb, holder, by=who(request)):
                said = f"{name} may now {verb}." if what == "give" else f"{name} may no longer {verb}."
                messages.success(request, said)
        except ImpossiblePermission as error:
            messages.error(request, str(error))
        return self._back(toolkit)

    def _given(self, request: HttpRequest, toolkit: Toolkit, form: GiveForm) -> bool:
        holder = form.cleaned_data["holder"]
        try:
            permissions.give_all(toolkit, form.cleaned_data["give"], holder, by=who(request))
        except ImpossiblePermission as error:
            form.add_error("give", str(error))
            return False
        messages.success(request, f"{permissions.name_of(holder)} may now {', '.join(form.cleaned_data['give'])}.")
        return True

    def _toolkit(self, request: HttpRequest, object_id: str) -> Toolkit:
        toolkit: Toolkit = get_object_or_404(access.visible_toolkits(who(request)), pk=number(object_id))
        if not may_list(who(request), toolkit):
            raise PermissionDenied(f"Who may do what with {toolkit} is told to those who give permissions or audit it.")
        return toolkit

    def _back(self, toolkit: Toolkit) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:registry_toolkit_permissions", args=[toolkit.pk]))


def requests_about(toolkit: Toolkit) -> str:
    """The list of what agents asked for on this toolkit."""
    return f"{reverse('admin:policy_accessrequest_changelist')}?toolkit__id__exact={toolkit.pk}"


def _row(held: Held, givable: list[str]) -> dict[str, Any]:
    possible = FOR_AGENTS if held.holder.startswith(AGENT) else VERBS
    cells = []
    for verb in VERBS:
        has = verb in held.permissions
        can_change = verb in givable and (has or verb in possible)
        cells.append({"verb": verb, "has": has, "click": ("take" if has else "give") if can_change else ""})
    return {"holder": held.holder, "cells": cells}


def _with_permissions_everywhere() -> list[str]:
    """Agents that may call every toolkit; the table shows only what was given on this one."""
    permitted = {"content_type__app_label": "registry", "codename": "call_toolkit"}
    found = Agent.objects.filter(**{f"user__user_permissions__{name}": value for name, value in permitted.items()})
    return [f"{AGENT}{name}" for name in found.order_by("name").values_list("name", flat=True)[:SUGGESTED]]


def _suggestions(user: User, toolkit: Toolkit) -> list[str]:
    """Names to choose from; of agents those that this person may see, or that have asked."""
    people = User.objects.filter(is_active=True).exclude(username__startswith=AGENT).order_by("username")
    known = Q() if user.has_perm("policy.view_agent") else Q(owner=user) | Q(access_requests__toolkit=toolkit)
    bots = Agent.objects.filter(known).order_by("name").distinct()
    return [
        *(f"group:{name}" for name in Group.objects.order_by("name").values_list("name", flat=True)[:SUGGESTED]),
        *(f"user:{name}" for name in people.values_list("username", flat=True)[:SUGGESTED]),
        *(f"{AGENT}{name}" for name in bots.values_list("name", flat=True)[:SUGGESTED]),
    ]
