"""What a person says about a call."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from registry import strictjson


class SettleForm(forms.Form):
    """What became of a call whose outcome is unknown, and how one knows."""

    outcome = forms.ChoiceField(
        choices=[("succeeded", "It did its work"), ("failed", "It did not")], widget=UnfoldAdminSelectWidget
    )
    reason = forms.CharField(
        min_length=3,
        max_length=1000,
        help_text="How you know: where you looked, whom you asked. It becomes part of the evidence.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )


class BreakGlassForm(forms.Form):
    """Why a call must run although policy has not allowed it; and what exactly runs, if that was not kept."""

    reason = forms.CharField(
        min_length=3,
        max_length=1000,
        help_text="Everyone who may review it is told at once, and another person looks at it afterwards.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
    )
    arguments = forms.CharField(
        required=False,
        max_length=100_000,
        help_text="Only if the call's exact arguments were not kept: the same ones again, as JSON.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )

    def clean_arguments(self) -> dict[str, Any] | None:
        text = self.cleaned_data["arguments"].strip()
        if not text:
            return None
        try:
            given = strictjson.loads(text.encode())
        except strictjson.StrictJSONError as error:
            raise forms.ValidationError(str(error)) from error
        if not isinstance(given, dict):
            raise forms.ValidationError("The arguments are a JSON object.")
        return given
