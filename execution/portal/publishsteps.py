"""One version, and the steps it can take; each step is confirmed on a page that says what will happen and to whom."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from execution.portal.affected import affected
from execution.portal.frame import for_people, page
from execution.portal.preview import preview
from policy import permissions, reviews
from policy.models import Review
from registry import access, publishing
from registry.actors import who
from registry.api.versions import find_version
from registry.manifests import manifest_of
from registry.manifesttext import manifest_text
from registry.models import Tool, ToolkitVersion
from registry.publishing import PublishingError
from registry.risk import RiskLevel

State = ToolkitVersion.State
MOST_REVIEWS = 20


class DeprecateForm(forms.Form):
    """From when it may be gone, and a word to those who call it."""

    sunset_on = forms.DateField(
        required=False,
        label="It may be withdrawn from",
        help_text="A day ahead (UTC). Every answer names it; nothing is withdrawn by itself.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    reason = forms.CharField(
        required=False,
        max_length=2_000,
        label="Note for those who call it",
        help_text="Such as: use 2.0.0, which takes a currency.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class WithdrawForm(forms.Form):
    """Why nobody may call it any more; shown to who asks for it."""

    reason = forms.CharField(
        max_length=2_000,
        label="Reason",
        help_text="It stays on record and is shown with the version.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class AnswerForm(forms.Form):
    """A reviewer's answer, bound to what was on the screen."""

    answer = forms.ChoiceField(
        label="Your answer",
        choices=[
            (Review.Answer.APPROVE, "Agree: it may be published"),
            (Review.Answer.REFUSE, "Refuse: back to its editors"),
        ],
        widget=forms.RadioSelect(),
    )
    note = forms.CharField(
        required=False,
        max_length=2_000,
        label="Note",
        help_text="A refusal says why.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    digest = forms.CharField(max_length=71, widget=forms.HiddenInput())


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that can be done with a version, by whom, and the writer that does it."""

    key: str
    title: str
    form: type[forms.Form]
    is_open: Callable[[ToolkitVersion], bool]
    may: Callable[[User, ToolkitVersion], bool]
    do: Callable[..., Any]
    done: str
    is_final: bool = False


def _publishes(user: User, version: ToolkitVersion) -> bool:
    return access.may(user, "publish", version.toolkit)


def _reviews(user: User, version: ToolkitVersion) -> bool:
    try:
        reviews.refuse_unfit_reviewer(version, user)
    except PermissionDenied:
        return False
    return True


STEPS: dict[str, Step] = {
    step.key: step
    for step in (
        Step(
            key="request-review",
            title="Ask for a review",
            form=forms.Form,
            is_open=lambda version: version.is_draft and not version.is_in_review,
            may=_publishes,
            do=reviews.request,
            done="waits for a second person.",
        ),
        Step(
            key="review",
            title="Review",
            form=AnswerForm,
            is_open=lambda version: version.is_in_review,
            may=_reviews,
            do=reviews.answer,
            done="has your answer.",
        ),
        Step(
            key="publish",
            title="Publish",
            form=forms.Form,
            is_open=lambda version: version.is_draft,
            may=_publishes,
            do=reviews.publish,
            done="is published.",
        ),
        Step(
            key="deprecate",
            title="Deprecate",
            form=DeprecateForm,
            is_open=lambda version: version.state == State.PUBLISHED,
            may=_publishes,
            do=publishing.deprecate,
            done="is deprecated.",
        ),
        Step(
            key="withdraw",
            title="Withdraw",
            form=WithdrawForm,
            is_open=lambda version: version.state in (State.PUBLISHED, State.DEPRECATED),
            may=_publishes,
            do=publishing.withdraw,
            done="is withdrawn.",
            is_final=True,
        ),
    )
}


@for_people("GET", "HEAD")
def show(request: HttpRequest, id: str) -> HttpResponse:
    """Where the version stands, what it changes and for whom, and what this person can do next."""
    version, user = _theirs(request, id), who(request)
    context = _facts(version) | {
        "steps": [step for step in STEPS.values() if step.is_open(version) and step.may(user, version)],
        "may_write": _publishes(user, version),
        "manifest": manifest_text(version),
        "reviews": [
            {"review": review, "is_current": review.digest == version.digest}
            for review in version.reviews.select_related("reviewer")[:MOST_REVIEWS]
        ],
    }
    return page(request, "portal/publish_version.html", str(version), **context)


@for_people("GET", "HEAD", "POST")
def take(request: HttpRequest, id: str, key: str) -> HttpResponse:
    """Confirms a step and takes it by the writer that the API calls; what it refuses is said here."""
    version, step = _theirs(request, id), STEPS.get(key)
    if step is None:
        raise Http404
    if not step.may(who(request), version):
        raise PermissionDenied(_lacking(step, version))
    if not step.is_open(version):
        stands = "in review" if version.is_in_review else version.state
        messages.error(request, f"{version} is {stands}; this step is not open to it.")
        return redirect("publish-version", str(version))
    form = step.form(request.POST if request.method == "POST" else None, initial={"digest": version.digest})
    if form.is_bound and form.is_valid():
        try:
            step.do(version, by=who(request), **form.cleaned_data)
        except (PublishingError, reviews.ReviewError) as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"{version} {step.done}")
            return redirect("publish-version", str(version))
    other = _next(version)
    context = _facts(version) | {
        "step": step,
        "form": form,
        "obstacles": reviews.obstacles(version) if key == "publish" else [],
        "reviewers": _reviewers(version) if key == "request-review" else [],
        "next": other,
        "takes_over": other is None or other.state == State.DEPRECATED or _numbers(version) > _numbers(other),
    }
    status = 422 if form.errors else 200
    return page(request, "portal/publish_step.html", f"{step.title}: {version}", status=status, **context)


def _theirs(request: HttpRequest, id: str) -> ToolkitVersion:
    """A version's page here is for those who publish or review its toolkit."""
    version = find_version(who(request), id)
    if not any(access.may(who(request), verb, version.toolkit) for verb in ("publish", "review")):
        raise PermissionDenied(f"This needs the permission 'publish' or 'review' on {version.toolkit.name}.")
    return version


def _facts(version: ToolkitVersion) -> dict[str, Any]:
    """What every page about a version shows: for a draft the preview, for one that is out who calls it."""
    told: dict[str, Any] = {"version": version, "risk": RiskLevel(version.risk).word}
    if version.is_draft:
        return told | {"preview": preview(manifest_of(version)), "approval": reviews.approval(version)}
    return told | {"affected": affected(Tool.objects.filter(version=version))}


def _next(version: ToolkitVersion) -> ToolkitVersion | None:
    """What callers get who name no version, this one aside."""
    others = ToolkitVersion.objects.callable().filter(toolkit=version.toolkit_id).exclude(pk=version.pk)
    by_preference = others.select_related("toolkit").order_by("-state", "-major", "-minor", "-patch")
    return by_preference.first()  # published before deprecated


def _numbers(version: ToolkitVersion) -> tuple[int, int, int]:
    return version.major, version.minor, version.patch


def _reviewers(version: ToolkitVersion) -> list[str]:
    """Who could give the review, as far as permissions on the toolkit say; superusers can anyway."""
    editor = f"user:{version.edited_by.get_username()}" if version.edited_by is not None else ""
    held = permissions.all_held(version.toolkit)
    return [each.holder for each in held if "review" in each.permissions and each.holder != editor]


def _lacking(step: Step, version: ToolkitVersion) -> str:
    if step.key != "review":
        return f"This needs the permission 'publish' on {version.toolkit.name}."
    return f"{version} is reviewed by somebody who may review {version.toolkit.name} and did not edit it last."
