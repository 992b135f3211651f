"""Forms for the steps of a version."""

from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from registry.models import ToolkitVersion

MAX_BYTES = 1_000_000
EXAMPLE = """apiVersion: placet.dev/v1
kind: Toolkit
metadata:
  name: Weather
  version: 1.0.0
  description: What the sky is doing.
spec:
  tools:
    - name: Today
      description: Tells today's weather in a city.
      risk: low
      capabilities: [network.read]
      idempotency: read
      input:
        type: object
        properties:
          city: {type: string, description: The city's name.}
        required: [city]
      runtime:
        type: http
        endpoint: https://weather.example.com/today
"""


class ManifestForm(forms.Form):
    """A manifest, pasted or uploaded."""

    manifest = forms.CharField(
        required=False,
        strip=False,
        label="Manifest (YAML or JSON)",
        widget=UnfoldAdminTextareaWidget(
            attrs={"rows": 26, "spellcheck": "false", "class": "placet-code", "placeholder": EXAMPLE}
        ),
    )
    file = forms.FileField(
        required=False, label="or a file", widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".yaml,.yml,.json"})
    )

    def clean(self) -> dict[str, Any]:
        """Exactly one of the two, as bytes in `body`."""
        given = super().clean() or {}
        upload, text = given.get("file"), given.get("manifest") or ""
        if upload is not None and text.strip():
            raise forms.ValidationError("Paste a manifest or upload a file, not both.")
        if upload is None and not text.strip():
            raise forms.ValidationError("Paste a manifest or upload a file.")
        if upload is not None and upload.size > MAX_BYTES:
            raise forms.ValidationError(f"The file is larger than {MAX_BYTES:,} bytes.")
        given["body"] = upload.read() if upload is not None else text.encode("utf-8", "surrogatepass")
        return given


class EditForm(ManifestForm):
    """The manifest of a draft, to change."""

    file = None  # type: ignore[assignment]

    def clean(self) -> dict[str, Any]:
        given = forms.Form.clean(self) or {}
        if not (given.get("manifest") or "").strip():
            raise forms.ValidationError("The manifest is empty.")
        given["body"] = given["manifest"].encode("utf-8", "surrogatepass")
        return given


class NoteForm(forms.Form):
    """A note that callers of a deprecated version will read."""

    note = forms.CharField(
        required=False,
        max_length=2_000,
        label="Note for those who call it",
        help_text="Such as: use 2.0.0, this one stops in March.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )
    sunset_on = forms.DateField(
        required=False,
        label="It may be withdrawn from",
        help_text="A day ahead (UTC), told with every answer; leave it empty if there is none yet.",
        widget=UnfoldAdminTextInputWidget(attrs={"type": "date"}),
    )


class ReasonForm(forms.Form):
    """Why something is done; never empty."""

    reason = forms.CharField(max_length=2_000, widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}))


class CompareForm(forms.Form):
    """The version to compare with."""

    to = forms.ModelChoiceField(ToolkitVersion.objects.none(), label="Compare with", widget=UnfoldAdminSelectWidget())

    def __init__(self, others: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["to"].queryset = others  # type: ignore[attr-defined]
