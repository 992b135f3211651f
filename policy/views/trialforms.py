"""The forms on which policy is tried."""

from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from policy import replays
from policy.models import Agent, Revision
from registry import strictjson
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec


class _RevisionField(forms.ChoiceField):
    """The live revision, any of the newest, or the defaults."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=UnfoldAdminSelectWidget(), **kwargs)

    @staticmethod
    def offered() -> list[tuple[str, str]]:
        rows = [
            (
                str(row.number),
                f"Revision {row.number} ({row.get_state_display().lower()}){': ' + row.note if row.note else ''}",
            )
            for row in Revision.objects.order_by("-number")[:100]
        ]
        return [*rows, ("0", "The defaults, without any rule")]


class QuestionForm(forms.Form):
    """May this agent call this tool with this input?"""

    agent = forms.CharField(max_length=64, widget=UnfoldAdminTextInputWidget(attrs={"list": "agents"}))
    tool_id = forms.CharField(
        max_length=200,
        label="Tool",
        help_text="Such as Payments.Refund, or Payments.Refund@1.2.0.",
        widget=UnfoldAdminTextInputWidget(attrs={"list": "tools"}),
    )
    input = forms.CharField(
        required=False,
        initial="{}",
        strip=False,
        label="Input (JSON)",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 8, "spellcheck": "false", "class": "placet-code"}),
    )
    user_id = forms.CharField(
        required=False,
        max_length=255,
        label="On behalf of",
        help_text="The context's user_id, if the agent sends one.",
        widget=UnfoldAdminTextInputWidget(),
    )
    revision = _RevisionField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["revision"].choices = [("", "The live policy"), *_RevisionField.offered()]  # type: ignore[attr-defined]

    def clean_agent(self) -> Agent:
        agent = Agent.objects.filter(name=self.cleaned_data["agent"]).first()
        if agent is None:
            raise forms.ValidationError("There is no agent of this name.")
        return agent

    def clean_tool_id(self) -> ToolSpec:
        ref = ToolRef.parse(self.cleaned_data["tool_id"])
        tool = resolve(ref) if ref is not None else None
        if tool is None:
            raise forms.ValidationError("There is no tool of this name that can be called.")
        return tool

    def clean_input(self) -> dict[str, Any]:
        text = self.cleaned_data["input"].strip() or "{}"
        try:
            value = strictjson.loads(text.encode("utf-8", "surrogatepass"))
        except strictjson.StrictJSONError as error:
            raise forms.ValidationError(f"This is not JSON: {error.message}") from error
        if not isinstance(value, dict):
            raise forms.ValidationError("The input is an object: {…}")
        return value

    def clean(self) -> dict[str, Any]:
        """The input must fit the tool, as at every door: a question that cannot be asked has no answer."""
        given = super().clean() or {}
        if "tool_id" in given and "input" in given:
            for flaw in given["tool_id"].input.violations(given["input"])[:20]:
                self.add_error("input", f"{flaw.parameter}: {flaw.message}" if flaw.parameter else flaw.message)
        return given


class ReplayForm(forms.Form):
    """Which revision, over how many calls."""

    revision = _RevisionField()
    last = forms.IntegerField(
        min_value=1,
        max_value=replays.MAX_LAST,
        initial=1_000,
        label="Over the last … calls",
        help_text=f"Recorded calls that were judged, newest first; at most {replays.MAX_LAST:,}.",
        widget=UnfoldAdminIntegerFieldWidget(attrs={"min": 1, "max": replays.MAX_LAST}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["revision"].choices = _RevisionField.offered()  # type: ignore[attr-defined]
