"""Agents in the admin: make one, hand it keys, take them back, shut it out."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, reverse
from django.utils import timezone
from guardian.shortcuts import get_objects_for_user
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from policy import agents
from policy.granting import ungrantable
from policy.models import Agent
from registry import access
from registry.actors import AGENT, actor, who
from registry.admin.guarded import ReadOnly
from registry.admin.pages import PagesAdmin, number, only
from registry.models import Toolkit


class NewAgentForm(forms.Form):
    """What a new agent is called, who answers for it, and what it may call."""

    name = forms.CharField(max_length=64, widget=UnfoldAdminTextInputWidget())
    owner = forms.ModelChoiceField(
        User.objects.none(),
        to_field_name="username",
        widget=UnfoldAdminSelectWidget(),
        help_text="The person who answers for this agent.",
    )
    call = forms.ModelMultipleChoiceField(
        Toolkit.objects.none(),
        to_field_name="name",
        required=False,
        label="May call",
        widget=UnfoldAdminSelectMultipleWidget(),
        help_text="Toolkits whose tools it may call; more can be given later on the toolkit's page.",
    )
    call_all = forms.BooleanField(
        required=False,
        label="May call every toolkit",
        widget=UnfoldBooleanWidget(),
        help_text="Also those that are published later. Only a superuser can give this.",
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        people = User.objects.filter(is_active=True).exclude(username__startswith=AGENT).order_by("username")
        self.fields["owner"].queryset = people  # type: ignore[attr-defined]
        self.fields["owner"].initial = user.get_username()
        self.fields["call"].queryset = access.visible_toolkits(user)  # type: ignore[attr-defined]
        if not user.is_superuser:
            del self.fields["call_all"]

    def clean_call(self) -> list[str]:
        names = [toolkit.name for toolkit in self.cleaned_data["call"]]
        if missing := ungrantable(self.user, verb="call", toolkits=names):
            raise forms.ValidationError(f"You cannot give 'call' on {', '.join(missing)}: you do not have it yourself.")
        return names


class NewKeyForm(forms.Form):
    """A further key: what it is for."""

    label = forms.CharField(
        max_length=100,
        required=False,
        label="What is it for?",
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "such as: staging"}),
    )


@admin.register(Agent)
class AgentAdmin(ReadOnly, PagesAdmin):
    """Agents that one owns, or all for those who may view agents; secrets are shown once, in the answer itself."""

    empty_text = "No agent yet, or none that is yours. Make one here, or with manage.py create_agent."
    list_display = ["name", "owner", "kind", "active", "open_keys", "created_at"]
    list_display_links = ["name"]
    list_filter = ["is_active", ("owner", admin.RelatedOnlyFieldListFilter)]
    list_select_related = ["owner"]
    search_fields = ["name", "owner__username"]
    list_per_page = 50

    def get_urls(self) -> list[URLPattern]:
        steps = [
            self.step("new-key", self.new_key),
            self.step("revoke-key", self.revoke_key),
            self.step("disable", self.disable),
            self.step("enable", self.enable),
        ]
        return [*steps, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        seen: QuerySet[Agent] = super().get_queryset(request)
        if not (request.user.has_perm("policy.view_agent") or request.user.has_perm("policy.change_agent")):
            seen = seen.filter(owner=request.user.pk)
        in_force = Q(credentials__revoked_at=None) & (
            Q(credentials__expires_at=None) | Q(credentials__expires_at__gt=timezone.now())
        )
        return seen.annotate(open_key_count=Count("credentials", filter=in_force))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_staff and request.user.has_perm("policy.add_agent"))

    @display(description="Kind", ordering="person")
    def kind(self, agent: Agent) -> str:
        return "A person at the portal" if agent.person_id is not None else "A program"

    @display(description="Active", boolean=True, ordering="is_active")
    def active(self, agent: Agent) -> bool:
        return agent.is_active

    @display(description="Keys in force", ordering="open_key_count")
    def open_keys(self, agent: Agent) -> int:
        return int(agent.open_key_count)  # type: ignore[attr-defined]

    # Pages

    @only("GET", "HEAD", "POST")
    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = NewAgentForm(who(request), request.POST or None)
        if request.method == "POST" and form.is_valid():
            asked = form.cleaned_data
            try:
                made = agents.create(
                    asked["name"],
                    actor=actor(who(request)),
                    owner=asked["owner"].get_username(),
                    call=asked["call"],
                    call_all=asked.get("call_all", False),
                )
            except agents.AgentError as error:
                form.add_error("name", str(error))
            else:
                return self._secrets(request, made.agent, made.key, made.jwt_secret)
        return self.page(request, "policy/new_agent.html", "New agent", form=form)

    @only("GET", "HEAD")
    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        agent = self._agent(request, object_id)
        permitted: QuerySet[Toolkit] = get_objects_for_user(
            agent.user, ["registry.call_toolkit"], accept_global_perms=False
        )
        return self.page(
            request,
            "policy/agent.html",
            agent.name,
            agent=agent,
            original=agent,
            keys=agent.credentials.order_by("-created_at"),
            now=timezone.now(),
            toolkits=permitted.order_by("name"),
            calls_all=agent.user.has_perm("registry.call_toolkit"),
            may_change=self._may_change(request, agent),
            form=NewKeyForm() if agent.person_id is None else None,
        )

    @only("POST")
    def new_key(self, request: HttpRequest, object_id: str) -> HttpResponse:
        agent = self._changeable(request, object_id)
        form = NewKeyForm(request.POST)
        if not form.is_valid():
            messages.error(request, "; ".join(str(error) for errors in form.errors.values() for error in errors))
            return self._back(agent)
        try:
            key = agents.new_key(agent, actor=actor(who(request)), label=form.cleaned_data["label"])
        except agents.AgentError as error:
            messages.error(request, str(error))
            return self._back(agent)
        return self._secrets(request, agent, key)

    @only("POST")
    def revoke_key(self, request: HttpRequest, object_id: str) -> HttpResponse:
        agent = self._changeable(request, object_id)
        credential = get_object_or_404(agent.credentials.all(), prefix=request.POST.get("prefix", "")[:16])
        if agents.revoke_key(credential, actor=actor(who(request))):
            messages.success(request, f"The key {credential} is revoked.")
        return self._back(agent)

    @only("POST")
    def disable(self, request: HttpRequest, object_id: str) -> HttpResponse:
        agent = self._changeable(request, object_id)
        if agents.set_active(agent, False, actor=actor(who(request))):
            messages.success(request, f"{agent.name} is shut out; none of its keys opens the door.")
        return self._back(agent)

    @only("POST")
    def enable(self, request: HttpRequest, object_id: str) -> HttpResponse:
        agent = self._changeable(request, object_id)
        if agents.set_active(agent, True, actor=actor(who(request))):
            messages.success(request, f"{agent.name} may call again.")
        return self._back(agent)

    def _secrets(self, request: HttpRequest, agent: Agent, key: str, jwt_secret: str = "") -> HttpResponse:
        """Shown in the answer to the POST itself: a redirect would have to keep the secret somewhere."""
        title = f"{agent.name}: copy this now"
        response = self.page(request, "policy/secrets.html", title, agent=agent, key=key, jwt_secret=jwt_secret)
        response["Cache-Control"] = "no-store"
        return response

    def _agent(self, request: HttpRequest, object_id: str) -> Agent:
        found = self.get_queryset(request).select_related("owner", "user")
        agent: Agent = get_object_or_404(found, pk=number(object_id))
        return agent

    def _may_change(self, request: HttpRequest, agent: Agent) -> bool:
        return agent.owner_id == request.user.pk or request.user.has_perm("policy.change_agent")

    def _changeable(self, request: HttpRequest, object_id: str) -> Agent:
        agent = self._agent(request, object_id)
        if not self._may_change(request, agent):
            raise PermissionDenied("Only the agent's owner, or who may change agents, can do this.")
        return agent

    def _back(self, agent: Agent) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:policy_agent_change", args=[agent.pk]))
