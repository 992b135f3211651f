"""What a person says about a call."""

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget


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
