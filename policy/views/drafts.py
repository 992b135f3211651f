"""Writing policy on pages: drafts, their rules, and which revision is live or a shadow."""

from collections.abc import Callable, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from policy import policyfile, readers, revisions
from policy.handedin import Flaw, Flawed, from_text
from policy.models import Revision
from policy.revisions import RevisionError
from policy.rulespec import RuleSpec
from policy.views.example import EXAMPLE
from policy.views.policy import address, compared, laid_out
from policy.views.portal import found, page, policy_page
from registry.actors import who


class PolicyForm(forms.Form):
    """A whole policy as text; for a draft that exists, with what was read of it."""

    note = forms.CharField(
        required=False,
        max_length=revisions.MAX_NOTE,
        label="Note",
        help_text="What this revision is for, for those who read the list later.",
        widget=UnfoldAdminTextInputWidget(),
    )
    text = forms.CharField(
        strip=False,
        label="Policy (YAML)",
        widget=UnfoldAdminTextareaWidget(
            attrs={"rows": 28, "spellcheck": "false", "class": "placet-code", "data-lines": "", "wrap": "off"}
        ),
    )
    digest = forms.CharField(required=False, max_length=71, widget=forms.HiddenInput())


@policy_page(readers.may_write, "GET", "HEAD", "POST")
def new(request: HttpRequest) -> HttpResponse:
    """A new draft: it starts from a revision's rules, or from an example while there is none."""
    origin = _origin(request)
    text = policyfile.written(revisions.rules_of(origin)) if origin else EXAMPLE
    form = PolicyForm(request.POST if request.method == "POST" else None, initial={"text": text})
    flaws: list[Flaw] = []
    if form.is_bound and form.is_valid():
        try:
            file = from_text(form.cleaned_data["text"])
            made = revisions.new_draft(
                by=who(request),
                rules=file.rules,
                # A revision that starts from another one without rules of its own would get the other's.
                based_on=origin.number if origin and file.rules else None,
                note=form.cleaned_data["note"] or file.note,
            )
        except Flawed as error:
            flaws = error.flaws
        except RevisionError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"Revision {made.number} is saved as a draft; nothing is decided by it yet.")
            return redirect(address(made))
    title = "New draft" if origin or Revision.objects.exists() else "Write the first policy"
    back = reverse("policy")
    return _form(request, form, flaws, title=title, button="Save draft", back=back, origin=origin, is_new=True)


@policy_page(readers.may_write, "GET", "HEAD", "POST")
def edit(request: HttpRequest, id: int) -> HttpResponse:
    """The whole text of a draft; refused if someone else has changed it in the meantime."""
    draft = found(id)
    rules = revisions.rules_of(draft)
    if obstacle := _obstacle(draft):
        messages.error(request, obstacle)
        return redirect(address(draft))
    initial = {"text": policyfile.written(rules), "digest": revisions.digest_of(rules)}
    form = PolicyForm(request.POST if request.method == "POST" else None, initial=initial)
    del form.fields["note"]
    flaws: list[Flaw] = []
    if form.is_bound and form.is_valid():
        try:
            file = from_text(form.cleaned_data["text"])
            _replace(request, draft, file.rules, read=form.cleaned_data["digest"])
        except Flawed as error:
            flaws = error.flaws
        except RevisionError as error:
            form.add_error(None, str(error))
        else:
            if file.note and file.note != draft.note:
                messages.warning(request, "The rules are saved. A note is given when a draft is made, and stays.")
            else:
                messages.success(request, "The draft is saved.")
            return redirect(address(draft))
    return _form(request, form, flaws, title=f"Edit revision {id}", button="Save", back=address(draft), revision=draft)


@policy_page(readers.may_write, "POST")
def arrange(request: HttpRequest, id: int) -> HttpResponse:
    """Moves one rule of a draft, takes it out, or puts all of them into a new order; a script gets the rules anew."""
    draft, step = found(id), request.POST.get("step", "")
    rules = revisions.rules_of(draft)
    try:
        arranged, done = (
            _ordered(rules, request) if step == "order" else _moved(rules, request.POST.get("rule", ""), step)
        )
        _replace(request, draft, arranged, read=revisions.digest_of(rules))
    except RevisionError as error:
        return _arranged(request, id, str(error), is_good=False)
    return _arranged(request, id, done, is_good=True)


@policy_page(readers.may_write, "GET", "HEAD", "POST")
def activate(request: HttpRequest, id: int) -> HttpResponse:
    """Asks once more, with everything that would change, and then makes the revision live."""
    row, now = found(id), revisions.live()
    verb = "Roll back to" if row.state == Revision.State.RETIRED else "Activate"
    if request.method == "POST":
        seen = request.POST.get("live", "")
        if seen != str(now.number if now else 0):
            messages.error(request, "Another revision has become live in the meantime; look at what would change now.")
            return redirect("policy-activate", id)
        return _step(request, row, lambda: revisions.activate(row, by=who(request)), f"Revision {id} is live now.")
    if now == row:
        messages.info(request, f"Revision {id} is live already.")
        return redirect(address(row))
    return page(
        request,
        "policy/policy_confirm.html",
        f"{verb} revision {id}",
        tab="policy-revisions",
        revision=row,
        live=now,
        old_name=f"revision {now.number}" if now else "the defaults",
        button=f"{verb} revision {id}",
        is_activation=True,
        **compared(now, row),
    )


@policy_page(readers.may_write, "GET", "HEAD", "POST")
def discard(request: HttpRequest, id: int) -> HttpResponse:
    """Asks once more, and then throws a draft away."""
    row = found(id)
    if request.method == "POST":
        done = _step(request, row, lambda: revisions.discard(row, by=who(request)), f"Draft {id} is thrown away.")
        return done if Revision.objects.filter(number=id).exists() else redirect("policy-revisions")
    if not row.is_draft:
        messages.error(request, f"Revision {id} was live and is kept for ever.")
        return redirect(address(row))
    title = f"Throw draft {id} away"
    return page(
        request, "policy/policy_confirm.html", title, tab="policy-revisions", revision=row, button="Throw it away"
    )


@policy_page(readers.may_write, "POST")
def shadow(request: HttpRequest, id: int) -> HttpResponse:
    """Has a revision judged beside the live one, or ends that."""
    row = found(id)
    if request.POST.get("on") == "1":
        done = f"Revision {id} is judged beside the live one from now on; where it differs is written down."
        return _step(request, row, lambda: revisions.set_shadow(row, by=who(request)), done)
    if not row.is_shadow:
        messages.info(request, f"Revision {id} is no shadow.")
        return redirect(address(row))
    return _step(
        request, row, lambda: revisions.set_shadow(None, by=who(request)), f"Revision {id} is no shadow any more."
    )


def _form(request: HttpRequest, form: PolicyForm, flaws: Sequence[Flaw], *, title: str, **context: Any) -> HttpResponse:
    status = 422 if flaws or form.errors else 200
    return page(
        request,
        "policy/policy_edit.html",
        title,
        tab="policy-revisions",
        status=status,
        form=form,
        flaws=flaws,
        **context,
    )


def _origin(request: HttpRequest) -> Revision | None:
    """Which revision the draft starts from: the one that the address names, or else the live one."""
    named = request.GET.get("from", "")
    if named.isascii() and named.isdecimal() and len(named) < 10:
        return found(int(named))
    return revisions.live()


def _obstacle(draft: Revision) -> str:
    if not draft.is_draft:
        return f"Revision {draft.number} was live and never changes; start a new draft from it instead."
    if draft.is_shadow:
        return f"Revision {draft.number} is the shadow, and its rules stay while it is; end that first."
    return ""


def _replace(request: HttpRequest, draft: Revision, rules: Sequence[RuleSpec], *, read: str) -> None:
    """Held until the rules are written, so that nobody's change in between is lost unseen."""
    with transaction.atomic():
        held = Revision.objects.select_for_update().filter(number=draft.number).first()
        if held is not None and read != revisions.digest_of(revisions.rules_of(held)):
            raise RevisionError(
                "Someone else has changed this draft since you opened it. Your text is below; nothing was saved."
            )
        revisions.replace_rules(draft, rules, by=who(request))


def _moved(rules: list[RuleSpec], name: str, step: str) -> tuple[list[RuleSpec], str]:
    """One rule a place up or down, or out; and what to say of it."""
    place = next((place for place, rule in enumerate(rules) if rule.name == name), None)
    if place is not None and step == "delete":
        return rules[:place] + rules[place + 1 :], f"The rule “{name}” is taken out."
    other = {"up": -1, "down": 1}.get(step, 0) + place if place is not None else -1
    if place is None or other == place or not 0 <= other < len(rules):
        raise RevisionError("That cannot be done with this rule; look at the draft as it is now.")
    arranged = list(rules)
    arranged[place], arranged[other] = arranged[other], arranged[place]
    return arranged, f"The rule “{name}” is moved {step}."


def _ordered(rules: list[RuleSpec], request: HttpRequest) -> tuple[list[RuleSpec], str]:
    """Every rule in the order of the form, if it names exactly those that the person saw."""
    by_name, names = {rule.name: rule for rule in rules}, request.POST.getlist("rule")
    is_current = request.POST.get("digest") == revisions.digest_of(rules)
    if not is_current or sorted(names) != sorted(by_name):
        raise RevisionError("Someone else has changed this draft since you opened it; this is how it is now.")
    moved = request.POST.get("moved", "")
    place = names.index(moved) + 1 if moved in by_name else 0
    done = f"The rule “{moved}” is now number {place}." if place else "The rules are in their new order."
    return [by_name[name] for name in names], done


def _arranged(request: HttpRequest, id: int, said: str, *, is_good: bool) -> HttpResponse:
    """Back to the page; or, where a script asks, only the part of it that has changed."""
    draft = found(id)
    if request.headers.get("HX-Request") == "true":
        told = {"said": said, "is_good": is_good, **laid_out(draft, who(request))}
        return render(request, "policy/policy_draft.html", told)
    (messages.success if is_good else messages.error)(request, said)
    return redirect(f"{address(draft)}#rules")


def _step(request: HttpRequest, row: Revision, step: Callable[[], object], done: str) -> HttpResponse:
    try:
        step()
    except RevisionError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, done)
    return redirect(address(row))
