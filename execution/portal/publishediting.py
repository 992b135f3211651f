"""Writing a manifest: paste, upload or fill in a form, checked while typing, previewed, and only then a draft."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from execution.portal import manifestform
from execution.portal.frame import for_people, page
from execution.portal.preview import preview
from execution.portal.publish import may_write
from execution.portal.standing import standing
from policy import reviews
from registry import access, yamlwriting
from registry.actors import who
from registry.admin.forms import EXAMPLE
from registry.api.versions import find_version
from registry.fields import ManifestError
from registry.manifestfaults import reading
from registry.manifestfiles import MAX_BYTES
from registry.manifests import export_manifest
from registry.manifestshape import Manifest
from registry.manifesttext import manifest_text
from registry.models import Tool, ToolkitVersion
from registry.models.capability import CONTRACT_LABELS
from registry.publishing import PublishingError
from registry.risk import RiskLevel
from registry.uploads import look, upload

REPEATED = {
    Tool.Idempotency.READ: "it only reads",
    Tool.Idempotency.IDEMPOTENT: "nothing more happens",
    Tool.Idempotency.KEYED: "once for each key",
    Tool.Idempotency.NON_IDEMPOTENT: "it happens again",
}
OUTCOMES = {
    "created": "the draft is saved.",
    "updated": "the draft is changed.",
    "unchanged": "nothing changed, the manifest says what is stored already.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong: where, why, and the line itself."""

    line: int | None
    path: str
    reason: str
    excerpt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A text after a look at it: all of its faults, or what it would write."""

    faults: tuple[Fault, ...] = ()
    manifest: Manifest | None = None
    stored: ToolkitVersion | None = None
    status: int = 200


@for_people("GET", "HEAD", "POST")
def new(request: HttpRequest) -> HttpResponse:
    """A manifest from nothing, or from a version that there is, under its next number."""
    _refuse_readers(request)
    if request.method == "POST":
        return _written(request, None)
    return _editor(request, _begun(request, request.GET.get("from", "")), None)


@for_people("GET", "HEAD", "POST")
def edit(request: HttpRequest, id: str) -> HttpResponse:
    """The manifest of a draft."""
    version = find_version(who(request), id)
    if not access.may(who(request), "publish", version.toolkit):
        raise PermissionDenied(f"This needs the permission 'publish' on {version.toolkit.name}.")
    if not version.is_draft:
        messages.error(request, f"{version} is {version.state} and never changes; make a new version instead.")
        return redirect("publish-version", str(version))
    if request.method == "POST":
        return _written(request, version)
    return _editor(request, manifest_text(version), version)


@never_cache
def check(request: HttpRequest) -> HttpResponse:
    """What is wrong with the text at this moment; nothing is written."""
    if not request.user.is_authenticated:
        return HttpResponse(status=401)  # a login form has no place beside the text; the script says what happened
    return _check(request)


@for_people("POST")
def _check(request: HttpRequest) -> HttpResponse:
    _refuse_readers(request)
    only = request.POST.get("only", "")
    version = find_version(who(request), only) if only else None
    checked = _checked(request, _given(request), version)
    return render(request, "portal/publish_faults.html", {"checked": checked})


@for_people("GET", "HEAD", "POST")
def form(request: HttpRequest) -> HttpResponse:
    """Fields and rows that make a manifest; from there on it is edited like any other."""
    _refuse_readers(request)
    filled, wish, status = manifestform.Filled(), request.POST.get("do", ""), 200
    if request.method == "POST":
        filled = manifestform.Filled.read(request.POST).after(wish)
        if wish == "make" and not any(tool.problem for tool in filled.tools):
            text = yamlwriting.write(filled.document())
            checked = _checked(request, text.encode(), None)
            if not checked.faults:
                return _editor(request, text, None, checked=checked)
            filled, status = filled.with_faults((each.path, each.reason) for each in checked.faults), checked.status
        elif wish == "make":
            status = 422
    context = {
        "filled": filled,
        "wish": wish,
        "labels": CONTRACT_LABELS,
        "risks": [level.word for level in RiskLevel],
        "idempotencies": REPEATED,
        "runtimes": tuple(manifestform.SETTINGS),
        "types": manifestform.PARAMETER_TYPES,
    }
    return page(request, "portal/publish_form.html", "Fill in a form", status=status, **context)


def _written(request: HttpRequest, only: ToolkitVersion | None) -> HttpResponse:
    """One step with the text: look again, go on to the preview, or store it."""
    text, wish = _given(request), request.POST.get("do", "check")
    if wish == "edit":
        return _editor(request, text.decode(errors="replace"), only)
    checked = _checked(request, text, only)
    if checked.manifest is None or wish == "check":
        return _editor(request, text.decode(errors="replace"), only, checked=checked)
    if wish in ("draft", "review"):
        try:
            return _stored(request, text, only, is_asking=wish == "review")
        except (ManifestError, reviews.ReviewError, PublishingError) as error:
            messages.error(request, str(error))
    context: dict[str, Any] = {
        "text": text.decode(),
        "checked": checked,
        "preview": preview(checked.manifest),
        "only": only,
        "action": _action(only),
        "is_other": _is_others(request, checked.stored),
    }
    return page(request, "portal/publish_preview.html", f"Preview of {checked.manifest}", **context)


@transaction.atomic
def _stored(request: HttpRequest, text: bytes, only: ToolkitVersion | None, *, is_asking: bool) -> HttpResponse:
    done = upload(text, by=who(request), only=only)
    told = f"{done.name}: {OUTCOMES[done.outcome]}"
    if is_asking:
        reviews.request(done.version, by=who(request))
        told = f"{done.name} is saved and waits for a second person."
    messages.success(request, told)
    return redirect("publish-version", done.name)


def _editor(
    request: HttpRequest,
    text: str,
    only: ToolkitVersion | None,
    *,
    checked: Checked | None = None,
) -> HttpResponse:
    context: dict[str, Any] = {
        "text": text,
        "checked": checked,
        "only": only,
        "action": _action(only),
        "example": EXAMPLE,
        "most": MAX_BYTES,
    }
    title = f"Edit {only}" if only is not None else "New version"
    status = checked.status if checked is not None else 200
    return page(request, "portal/publish_edit.html", title, status=status, **context)


def _given(request: HttpRequest) -> bytes:
    """A file that was chosen takes the place of the text; of one that is too large, enough is read to say so."""
    file = request.FILES.get("file")
    if file is not None and not isinstance(file, list):
        return bytes(file.read(MAX_BYTES + 1))
    return request.POST.get("manifest", "").replace("\r\n", "\n").encode(errors="replace")


def _checked(request: HttpRequest, text: bytes, only: ToolkitVersion | None) -> Checked:
    read = reading(text)
    found = read.faults
    if read.manifest is not None:
        try:
            return Checked(manifest=read.manifest, stored=look(read.manifest, by=who(request), only=only))
        except ManifestError as error:
            found = (read.file.located(error),)
        except PermissionDenied as error:
            return Checked(faults=(Fault(line=None, path="metadata.name", reason=str(error)),), status=403)
    lines = text.decode(errors="replace").split("\n")
    return Checked(
        faults=tuple(
            Fault(line=each.line, path=each.path, reason=each.reason, excerpt=_excerpt(lines, each.line))
            for each in found
        ),
        status=422,
    )


def _excerpt(lines: list[str], line: int | None) -> str:
    return lines[line - 1].strip()[:200] if line is not None and line <= len(lines) else ""


def _begun(request: HttpRequest, source: str) -> str:
    """The manifest of a version under the next number of its toolkit; nothing, if there is none to begin with."""
    if not source:
        return ""
    version = find_version(who(request), source)
    if not access.may(who(request), "publish", version.toolkit):
        raise PermissionDenied(f"This needs the permission 'publish' on {version.toolkit.name}.")
    numbers = ToolkitVersion.objects.filter(toolkit=version.toolkit, major=version.major)
    minor = numbers.order_by("-minor").values_list("minor", flat=True)[0] + 1
    document = export_manifest(version)
    document["metadata"]["version"] = f"{version.major}.{minor}.0"
    return yamlwriting.write(document)


def _is_others(request: HttpRequest, stored: ToolkitVersion | None) -> bool:
    """Whether saving changes a draft that somebody else wrote last."""
    return stored is not None and stored.is_draft and stored.edited_by_id != who(request).pk


def _action(only: ToolkitVersion | None) -> str:
    return reverse("publish-new") if only is None else reverse("publish-edit", args=[str(only)])


def _refuse_readers(request: HttpRequest) -> None:
    me = standing(request)
    if me is None or not may_write(me):
        raise PermissionDenied("Writing versions needs the permission to publish a toolkit, or to make one.")
