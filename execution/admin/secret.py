"""Secrets in the admin: keep one, give it a new value, discard an old one; no page ever shows a value."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from execution import secretreading, secretstore
from execution.models import Secret
from execution.secretstore import SecretError
from execution.secretvalues import ValueProblem, from_text
from registry import access
from registry.actors import actor, who
from registry.admin.guarded import ReadOnly
from registry.admin.pages import PagesAdmin, number, only
from registry.models import Toolkit


class ValueForm(forms.Form):
    """A value, which goes in and never comes out."""

    value = forms.CharField(
        strip=False,
        max_length=100_000,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
        help_text='A text, or a JSON object of texts such as {"client_id": "…", "client_secret": "…"}. '
        "At least 8 bytes and no common word. It is sealed, and no page shows it again.",
    )


class SettingsForm(forms.Form):
    """What a secret is for, and who may use it."""

    description = forms.CharField(max_length=400, required=False, widget=UnfoldAdminTextInputWidget())
    path = forms.CharField(
        max_length=400,
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Where it lies in Vault, below the mount; the name, if empty.",
    )
    toolkits = forms.ModelMultipleChoiceField(
        Toolkit.objects.none(),
        to_field_name="name",
        required=False,
        label="Toolkits that may use it",
        widget=UnfoldAdminSelectMultipleWidget(),
        help_text="None chosen: every toolkit may.",
    )

    def __init__(self, user: User, *args: Any, is_in_vault: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["toolkits"].queryset = access.visible_toolkits(user)  # type: ignore[attr-defined]
        if not is_in_vault:
            del self.fields["path"]


class NewSecretForm(SettingsForm, ValueForm):
    """A secret with its first value, or the place where it lies."""

    name = forms.CharField(
        max_length=128,
        widget=UnfoldAdminTextInputWidget(),
        help_text="What a manifest's secretRef says, such as search-api-key.",
    )
    source = forms.ChoiceField(
        choices=Secret.Source.choices, initial=Secret.Source.STORED, widget=UnfoldAdminSelectWidget()
    )
    field_order = ["name", "source", "value", "path", "description", "toolkits"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["value"].required = False  # what lies elsewhere has none here


@admin.register(Secret)
class SecretAdmin(ReadOnly, PagesAdmin):
    """For those who may view or change secrets; every change goes through the store, which writes the evidence."""

    empty_text = "No secret is kept. Keep one here, or with manage.py set_secret."
    list_display = ["name", "source", "used_in", "version", "last_use"]
    list_display_links = ["name"]
    list_filter = ["source"]
    search_fields = ["name", "description"]
    list_per_page = 50

    def get_urls(self) -> list[URLPattern]:
        steps = [
            self.step("new-version", self.new_version),
            self.step("settings", self.change_settings),
            self.step("discard", self.discard),
            self.step("delete", self.delete),
        ]
        return [*steps, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Secret]:
        return secretreading.overview()

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff and secretreading.may_see(request.user))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_module_permission(request) and request.user.has_perm("execution.add_secret")

    @display(description="May be used by")
    def used_in(self, secret: Secret) -> str:
        return ", ".join(sorted(toolkit.name for toolkit in secret.toolkits.all())) or "every toolkit"

    @display(description="Version")
    def version(self, secret: Secret) -> str:
        if secret.source != Secret.Source.STORED:
            return "kept elsewhere"
        return str(secret.in_force or "none left")  # type: ignore[attr-defined]

    @display(description="Last used", ordering="last_used", empty_value="never")
    def last_use(self, secret: Secret) -> Any:
        return secret.last_used  # type: ignore[attr-defined]

    # Pages

    @method_decorator(sensitive_post_parameters("value"))
    @only("GET", "HEAD", "POST")
    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = NewSecretForm(who(request), request.POST or None)
        if request.method == "POST" and form.is_valid():
            asked = form.cleaned_data
            text = asked.pop("value")
            asked["toolkits"] = [toolkit.name for toolkit in asked["toolkits"]]
            try:
                values = from_text(text) if text else None
                made = secretstore.create(asked.pop("name"), values, actor=actor(who(request)), **asked)
            except (SecretError, ValueProblem) as error:
                form.add_error(None, str(error))
            else:
                messages.success(request, f"{made.name} is kept.")
                return self._back(made)
        return self._page(request, "execution/secret_new.html", "New secret", form=form)

    @only("GET", "HEAD")
    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        secret = self._secret(request, object_id)
        toolkits = [toolkit.name for toolkit in secret.toolkits.all()]
        begin = {"description": secret.description, "path": secret.path, "toolkits": toolkits}
        is_in_vault = secret.source == Secret.Source.VAULT
        return self._page(
            request,
            "execution/secret.html",
            secret.name,
            secret=secret,
            original=secret,
            toolkits=sorted(toolkits),
            value=secretreading.shown_value(secret),
            place=secretreading.place(secret),
            tools=secretreading.tools_naming(secret)[:100],
            may_change=request.user.has_perm("execution.change_secret"),
            may_delete=request.user.has_perm("execution.delete_secret"),
            value_form=ValueForm(),
            settings_form=SettingsForm(who(request), initial=begin, is_in_vault=is_in_vault),
        )

    @method_decorator(sensitive_post_parameters("value"))
    @only("POST")
    def new_version(self, request: HttpRequest, object_id: str) -> HttpResponse:
        secret = self._secret(request, object_id, "change_secret")
        form = ValueForm(request.POST)
        if not form.is_valid():
            messages.error(request, "A secret cannot be empty.")
            return self._back(secret)
        try:
            made = secretstore.add_version(secret, from_text(form.cleaned_data["value"]), actor=actor(who(request)))
        except (SecretError, ValueProblem) as error:
            messages.error(request, str(error))
        else:
            told = f"Version {made.number} is used from the next attempt on." if made else "The value stays as it is."
            messages.success(request, told)
        return self._back(secret)

    @only("POST")
    def change_settings(self, request: HttpRequest, object_id: str) -> HttpResponse:
        secret = self._secret(request, object_id, "change_secret")
        form = SettingsForm(who(request), request.POST, is_in_vault=secret.source == Secret.Source.VAULT)
        if not form.is_valid():
            messages.error(request, "; ".join(str(error) for errors in form.errors.values() for error in errors))
            return self._back(secret)
        asked = form.cleaned_data
        unseen = secret.toolkits.exclude(pk__in=access.visible_toolkits(who(request)).values("pk"))
        asked["toolkits"] = [toolkit.name for toolkit in (*asked["toolkits"], *unseen)]
        try:
            if secretstore.change(secret, actor=actor(who(request)), **asked):
                messages.success(request, "Saved.")
        except SecretError as error:
            messages.error(request, str(error))
        return self._back(secret)

    @only("POST")
    def discard(self, request: HttpRequest, object_id: str) -> HttpResponse:
        secret = self._secret(request, object_id, "change_secret")
        version = number(request.POST.get("number", ""))
        if secretstore.discard(secret, version, actor=actor(who(request))):
            messages.success(request, f"Version {version} is discarded; its value is gone.")
        return self._back(secret)

    @only("POST")
    def delete(self, request: HttpRequest, object_id: str) -> HttpResponse:
        secret = self._secret(request, object_id, "delete_secret")
        if request.POST.get("name") != secret.name:
            messages.error(request, "Nothing was deleted: type the secret's name to say that you mean it.")
            return self._back(secret)
        secretstore.delete(secret, actor=actor(who(request)))
        messages.success(request, f"{secret.name} is deleted with all its versions.")
        return HttpResponseRedirect(reverse("admin:execution_secret_changelist"))

    def _page(self, request: HttpRequest, template: str, title: str, **context: Any) -> HttpResponse:
        response = self.page(request, template, title, **context)
        response["Cache-Control"] = "no-store"
        return response

    def _secret(self, request: HttpRequest, object_id: str, needed: str = "") -> Secret:
        if not self.has_module_permission(request) or (needed and not request.user.has_perm(f"execution.{needed}")):
            raise PermissionDenied(f"This needs the permission execution.{needed or 'view_secret'}.")
        return get_object_or_404(self.get_queryset(request), pk=number(object_id))

    def _back(self, secret: Secret) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:execution_secret_change", args=[secret.pk]))
