"""Versions in the admin: read them, write drafts, compare, deprecate and withdraw."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin import ChoicesFieldListFilter, RelatedOnlyFieldListFilter, SimpleListFilter
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, reverse
from unfold.decorators import display

from registry import access, publishing
from registry.actors import who
from registry.admin.forms import CompareForm, EditForm, ManifestForm, NoteForm, ReasonForm
from registry.admin.guarded import SeenToolkits
from registry.admin.pages import LABELS, PagesAdmin, number, only
from registry.admin.tool import shown
from registry.comparisons import Comparison, between, predecessor
from registry.manifests import ManifestError
from registry.manifesttext import manifest_text
from registry.models import ToolkitVersion
from registry.risk import RiskLevel
from registry.uploads import upload

PEOPLE = ("toolkit", "created_by", "edited_by", "reviewed_by", "published_by")


@dataclass(frozen=True, slots=True)
class Step:
    """A button on a version's page."""

    label: str
    url: str
    variant: str = "default"
    is_post: bool = False


class InReview(SimpleListFilter):
    """Drafts that wait for a second person."""

    title = "review"
    parameter_name = "review"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("waiting", "Waiting for review")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.in_review() if self.value() == "waiting" else queryset


class VersionAdmin(SeenToolkits, PagesAdmin):
    """A version is written by its manifest and moved by steps; a published one is only read."""

    empty_text = "No version yet, or none that you may see. Paste a manifest here, or run manage.py import_toolkit."
    list_display = ["name", "state_label", "risk_label", "tool_count", "published_at", "published_by", "edited_by"]
    list_display_links = ["name"]
    list_filter = [
        ("state", ChoicesFieldListFilter),
        ("risk", ChoicesFieldListFilter),
        InReview,
        ("toolkit", RelatedOnlyFieldListFilter),
    ]
    list_select_related = ["toolkit", "published_by", "edited_by"]
    search_fields = ["toolkit__name", "title", "description", "digest", "tools__name"]
    search_help_text = "Search toolkits, texts, tool names and digests"
    ordering = ["toolkit__name", "-major", "-minor", "-patch"]
    list_per_page = 50
    refusals: tuple[type[Exception], ...] = (publishing.PublishingError,)

    def get_urls(self) -> list[URLPattern]:
        steps = [
            self.step("edit", self.edit_view),
            self.step("compare", self.compare_view),
            self.step("deprecate", self.deprecate_view),
            self.step("withdraw", self.withdraw_view),
        ]
        return [*steps, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolkitVersion]:
        found: QuerySet[ToolkitVersion] = super().get_queryset(request)
        return found.annotate(number_of_tools=Count("tools", distinct=True))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The button is for all staff: whether a manifest is taken depends on the toolkit it names."""
        return self.has_module_permission(request)

    @display(description="Version", ordering="toolkit__name")
    def name(self, version: ToolkitVersion) -> str:
        return str(version)

    @display(description="State", ordering="state", label=LABELS)
    def state_label(self, version: ToolkitVersion) -> tuple[str, str]:
        return version.state, "In review" if version.is_in_review else version.get_state_display()

    @display(description="Risk", ordering="risk", label=LABELS)
    def risk_label(self, version: ToolkitVersion) -> tuple[str, str]:
        return RiskLevel(version.risk).word, RiskLevel(version.risk).label

    @display(description="Tools", ordering="number_of_tools")
    def tool_count(self, version: ToolkitVersion) -> int:
        return int(version.number_of_tools)  # type: ignore[attr-defined]

    # Pages

    @only("GET", "HEAD")
    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        version = self.version(request, object_id)
        is_open = access.may_read_manifest(request.user, version.toolkit)
        risk = RiskLevel(version.risk)
        return self.page(
            request,
            "registry/version.html",
            str(version),
            version=version,
            original=version,
            state_kind=LABELS[version.state],
            risk_kind=LABELS[risk.word],
            risk_text=f"{risk.label} risk",
            steps=self.steps_for(request, version),
            tools=self.shown_tools(version, is_open=is_open),
            manifest=manifest_text(version) if is_open else "",
            **self.more_about(version),
        )

    @only("GET", "HEAD", "POST")
    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ManifestForm(request.POST or None, request.FILES or None)
        back = reverse("admin:registry_toolkitversion_changelist")
        return self._written(request, form, "New draft", "Save draft", back)

    @only("GET", "HEAD", "POST")
    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        version = self.publishable(request, object_id)
        if not version.is_draft:
            messages.error(request, f"{version} is {version.state} and never changes; make a new version instead.")
            return self.back_to(version)
        form = EditForm(request.POST or None, initial={"manifest": manifest_text(version)})
        return self._written(request, form, f"Edit {version}", "Save draft", self.url_of(version), only=version)

    def _written(
        self, request: HttpRequest, form: Any, title: str, submit: str, back: str, only: ToolkitVersion | None = None
    ) -> HttpResponse:
        problems: list[dict[str, Any]] = []
        if request.method == "POST" and form.is_valid():
            try:
                done = upload(form.cleaned_data["body"], by=who(request), only=only)
            except ManifestError as error:
                problems = [{"line": error.line, "path": error.path, "reason": error.reason}]
            else:
                messages.success(request, f"{done.name}: {_OUTCOMES[done.outcome]}")
                return self.back_to(done.version)
        context = {"form": form, "problems": problems, "button": submit, "back": back, "original": only}
        return self.page(request, "registry/manifest_form.html", title, **context)

    @only("GET", "HEAD")
    def compare_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        new = self.version(request, object_id)
        if not access.may_read_manifest(request.user, new.toolkit):
            raise PermissionDenied("Comparing manifests needs the permission to read them.")
        others = access.visible_versions(request.user).filter(toolkit=new.toolkit_id).exclude(pk=new.pk)
        others = others.select_related("toolkit").order_by("-major", "-minor", "-patch")
        before = predecessor(new) or others.first()
        form = CompareForm(others, request.GET if "to" in request.GET else None, initial={"to": before})
        old = form.cleaned_data["to"] if form.is_bound and form.is_valid() else None if form.is_bound else before
        context: dict[str, Any] = {"form": form, "has_others": before is not None, "original": new}
        if old is not None:
            comparison = between(old, new)
            context |= {"verdict": self.told(comparison), "rows": comparison.rows(), "old": old, "new": new}
        return self.page(request, "registry/compare.html", f"Compare {new}", **context)

    @only("GET", "HEAD", "POST")
    def deprecate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        version = self.publishable(request, object_id)
        form = NoteForm(request.POST if request.method == "POST" else None)
        if form.is_bound and form.is_valid():
            note, day = form.cleaned_data["note"], form.cleaned_data["sunset_on"]
            deprecate = publishing.deprecate
            return self.done(request, version, lambda: deprecate(version, by=who(request), reason=note, sunset_on=day))
        return self.page(
            request,
            "registry/step.html",
            f"Deprecate {version}",
            form=form,
            button="Deprecate",
            original=version,
            back=self.url_of(version),
            explanation="It can still be called, and every answer says that it is deprecated.",
        )

    @only("GET", "HEAD", "POST")
    def withdraw_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        version = self.publishable(request, object_id)
        form = ReasonForm(request.POST if request.method == "POST" else None)
        if form.is_bound and form.is_valid():
            reason = form.cleaned_data["reason"]
            return self.done(request, version, lambda: publishing.withdraw(version, by=who(request), reason=reason))
        return self.page(
            request,
            "registry/step.html",
            f"Withdraw {version}",
            form=form,
            button="Withdraw for good",
            original=version,
            variant="danger",
            back=self.url_of(version),
            explanation="Nobody can call it from that moment on, and it never comes back. The reason is shown.",
        )

    # For subclasses and templates

    def steps_for(self, request: HttpRequest, version: ToolkitVersion) -> list[Step]:
        """The buttons this person gets on this version's page."""
        state, may = ToolkitVersion.State, access.may(request.user, "publish", version.toolkit)
        steps = []
        if access.may_read_manifest(request.user, version.toolkit):
            steps.append(Step("Compare", self.url_of(version, "compare")))
        if may and version.is_draft:
            steps.append(Step("Edit", self.url_of(version, "edit")))
        if may and version.state == state.PUBLISHED:
            steps.append(Step("Deprecate", self.url_of(version, "deprecate")))
        if may and version.state in (state.PUBLISHED, state.DEPRECATED):
            steps.append(Step("Withdraw", self.url_of(version, "withdraw"), "danger"))
        return steps

    def more_about(self, version: ToolkitVersion) -> dict[str, Any]:
        """What else the page shows; the policy app tells of reviews here."""
        return {}

    def version(self, request: HttpRequest, object_id: str) -> ToolkitVersion:
        found = access.visible_versions(request.user).select_related(*PEOPLE)
        return get_object_or_404(found, pk=number(object_id))

    def publishable(self, request: HttpRequest, object_id: str) -> ToolkitVersion:
        version = self.version(request, object_id)
        if not access.may(request.user, "publish", version.toolkit):
            raise PermissionDenied(f"This needs the permission 'publish' on {version.toolkit.name}.")
        return version

    def done(self, request: HttpRequest, version: ToolkitVersion, step: Callable[[], object]) -> HttpResponse:
        """Takes a step and goes back to the version's page, with what happened."""
        try:
            step()
        except self.refusals as error:
            messages.error(request, str(error))
        else:
            stored = ToolkitVersion.objects.select_related("toolkit").get(pk=version.pk)
            messages.success(request, f"{stored} is {'in review' if stored.is_in_review else stored.state}.")
        return self.back_to(version)

    def shown_tools(self, version: ToolkitVersion, *, is_open: bool) -> list[dict[str, Any]]:
        """The version's tools for the template."""
        tools = version.tools.prefetch_related("capabilities").order_by("position", "name")
        for tool in tools:
            tool.version = version
        return [shown(tool, is_open=is_open) for tool in tools]

    def told(self, comparison: Comparison) -> dict[str, Any]:
        """A comparison for the template."""
        verdict = comparison.verdict
        return {
            "level": verdict.level,
            "kind": "danger" if verdict.level == "breaking" else "success",
            "reasons": verdict.reasons,
            "other": str(comparison.old),
            "url": self.url_of(comparison.old),
        }

    def url_of(self, version: ToolkitVersion, step: str = "change") -> str:
        return reverse(f"admin:registry_toolkitversion_{step}", args=[version.pk])

    def back_to(self, version: ToolkitVersion) -> HttpResponse:
        return HttpResponseRedirect(self.url_of(version))


_OUTCOMES = {
    "created": "the draft is saved.",
    "updated": "the draft is changed.",
    "unchanged": "nothing changed, the manifest says what is stored already.",
}
