"""Versions in the admin, with the steps that need a person's word: review and publish."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextareaWidget

from policy import reviews
from registry import access
from registry.actors import is_person, who
from registry.admin.pages import only
from registry.admin.version import Step, VersionAdmin
from registry.comparisons import against_predecessor
from registry.models import ToolkitVersion
from registry.publishing import reasons_for_review


class ReviewForm(forms.Form):
    """A reviewer's answer, bound to what was on the screen."""

    answer = forms.ChoiceField(
        choices=[("approve", "Approve: it may be published"), ("refuse", "Refuse: back to its editors")],
        widget=UnfoldAdminRadioSelectWidget(),
    )
    note = forms.CharField(
        max_length=2_000,
        required=False,
        help_text="A refusal says why.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )
    digest = forms.CharField(max_length=71, widget=forms.HiddenInput())


@admin.register(ToolkitVersion)
class ReviewedVersionAdmin(VersionAdmin):
    """Request a review, answer it, publish."""

    refusals = (*VersionAdmin.refusals, reviews.ReviewError)

    def get_urls(self) -> list[URLPattern]:
        steps = [
            self.step("request-review", self.request_review_view),
            self.step("review", self.review_view),
            self.step("publish", self.publish_view),
        ]
        return [*steps, *super().get_urls()]

    def steps_for(self, request: HttpRequest, version: ToolkitVersion) -> list[Step]:
        steps = super().steps_for(request, version)
        if not version.is_draft:
            return steps
        if access.may(request.user, "publish", version.toolkit):
            if not version.is_in_review:
                steps.append(Step("Request review", self.url_of(version, "request_review"), is_post=True))
            steps.append(Step("Publish", self.url_of(version, "publish"), "primary"))
        if version.is_in_review and self._may_review(request, version):
            steps.append(Step("Review", self.url_of(version, "review"), "primary"))
        return steps

    def more_about(self, version: ToolkitVersion) -> dict[str, Any]:
        given = version.reviews.select_related("reviewer")[:20]
        told = [{"review": review, "is_current": review.digest == version.digest} for review in given]
        return {"reviews": told, "to_review": reasons_for_review(version) if version.is_draft else []}

    @only("POST")
    def request_review_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        version = self.version(request, object_id)
        return self.done(request, version, lambda: reviews.request(version, by=who(request)))

    @only("GET", "HEAD", "POST")
    def review_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        version = self.version(request, object_id)
        reviews.refuse_unfit_reviewer(version, who(request))
        form = ReviewForm(request.POST if request.method == "POST" else None, initial={"digest": version.digest})
        if form.is_bound and form.is_valid():
            try:
                reviews.answer(version, by=who(request), **form.cleaned_data)
            except reviews.ReviewError as error:
                form.add_error(None, str(error))
            else:
                return self.back_to(version)
        return self._step(
            request,
            version,
            f"Review {version}",
            form,
            "Give this answer",
            to_review=reasons_for_review(version),
            tools=self.shown_tools(version, is_open=access.may_read_manifest(request.user, version.toolkit)),
        )

    @only("GET", "HEAD", "POST")
    def publish_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        version = self.publishable(request, object_id)
        if request.method == "POST":
            return self.done(request, version, lambda: reviews.publish(version, by=who(request)))
        refusals = reviews.obstacles(version)
        explanation = (
            "It cannot be published yet:" if refusals else "From then on its tools can be called, and it never changes."
        )
        return self._step(
            request,
            version,
            f"Publish {version}",
            forms.Form(),
            "Publish",
            explanation=explanation,
            obstacles=refusals,
        )

    def _step(
        self, request: HttpRequest, version: ToolkitVersion, title: str, form: forms.Form, submit: str, **more: Any
    ) -> HttpResponse:
        comparison = against_predecessor(version) if version.is_draft else None
        context = {"form": form, "button": submit, "back": self.url_of(version), "original": version, **more}
        if comparison is not None:
            context["verdict"] = self.told(comparison)
        return self.page(request, "registry/step.html", title, **context)

    def _may_review(self, request: HttpRequest, version: ToolkitVersion) -> bool:
        try:
            reviews.refuse_unfit_reviewer(version, who(request))
        except PermissionDenied:
            return False
        return is_person(who(request))
