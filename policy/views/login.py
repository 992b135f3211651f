"""The way in and out for people, whether or not they may open the admin; and where each of them starts."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget


class LoginForm(AuthenticationForm):
    """Name and password; who approves need not be staff."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name = {"autocomplete": "username", "autofocus": True, "autocapitalize": "none"}
        self.fields["username"].widget = UnfoldAdminTextInputWidget(attrs=name)
        self.fields["password"].widget = UnfoldAdminPasswordWidget(attrs={"autocomplete": "current-password"})


class Login(LoginView):
    """Leads on to the page that asked for a login, or home."""

    template_name = "policy/approval_login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        frame = admin.site.each_context(self.request)
        own = {"title": "Log in", "app_path": self.request.get_full_path(), "site_url": None}
        return {**frame, **super().get_context_data(**kwargs), **own}


def home(request: HttpRequest) -> HttpResponse:
    """Whoever may open the admin starts there, everybody else with the approvals."""
    if not request.user.is_authenticated:
        return redirect("login")
    return redirect("admin:index" if request.user.is_staff else "approvals")
