"""Icons of a tool: named in the manifest, kept, exported as they came, refused where a client could not show them."""

from typing import Any

import pytest

from registry.fields import ManifestError
from registry.manifests import export_manifest, import_manifest
from registry.manifestshape import parse
from registry.resolution import resolve
from registry.toolref import ToolRef
from tests.factories.registry import manifest, published

ICONS: list[dict[str, Any]] = [
    {"src": "https://tools.example/add.png", "mimeType": "image/png", "sizes": ["48x48", "96x96"], "theme": "dark"},
    {"src": "data:image/svg+xml;base64,PHN2Zy8+", "sizes": ["any"]},
]


@pytest.mark.django_db
def test_icons_reach_the_tool_and_come_back_from_the_export_as_they_were() -> None:
    version = published("Calculator", "1.0.0", {"icons": ICONS})
    tool = resolve(ToolRef("Calculator", "Add"))
    assert tool is not None
    assert list(tool.icons) == ICONS
    assert export_manifest(version)["spec"]["tools"][0]["icons"] == ICONS
    assert import_manifest(export_manifest(version), by=None).outcome == "unchanged"


def test_a_manifest_without_icons_has_the_digest_it_had_before_there_were_any() -> None:
    assert "icons" not in parse(manifest()).document()["spec"]["tools"][0]
    assert parse(manifest()).digest != parse(manifest("Calculator", "1.0.0", {"icons": ICONS})).digest


@pytest.mark.parametrize(
    ("icons", "path"),
    [
        ("https://tools.example/add.png", "icons"),
        ([{}], "icons[0].src"),
        ([{"src": "http://tools.example/add.png"}], "icons[0].src"),
        ([{"src": "javascript:alert(1)"}], "icons[0].src"),
        ([{"src": "https://user:word@tools.example/add.png"}], "icons[0].src"),
        ([{"src": "https:///add.png"}], "icons[0].src"),
        ([{"src": "data:text/html,<script>"}], "icons[0].src"),
        ([{"src": "https://tools.example/a b.png"}], "icons[0].src"),
        ([{"src": "https://tools.example/" + "a" * 40_000}], "icons[0].src"),
        ([{"src": "https://tools.example/a", "mimeType": "text/html"}], "icons[0].mimeType"),
        ([{"src": "https://tools.example/a", "sizes": "48x48"}], "icons[0].sizes"),
        ([{"src": "https://tools.example/a", "sizes": ["0x48"]}], "icons[0].sizes[0]"),
        ([{"src": "https://tools.example/a", "theme": "pink"}], "icons[0].theme"),
        ([{"src": "https://tools.example/a", "alt": "plus"}], "icons[0].alt"),
        ([{"src": "https://tools.example/a"}] * 9, "icons"),
    ],
)
def test_what_a_client_could_not_show_or_should_not_load_is_refused_by_its_path(icons: Any, path: str) -> None:
    with pytest.raises(ManifestError) as refused:
        parse(manifest("Calculator", "1.0.0", {"icons": icons}))
    assert refused.value.path == f"spec.tools[0].{path}"
