"""Pictures: each page of the showcase has its three looks in docs/screens, and none is left of a page that is gone."""

from bench.screens import FOLDER, LOOKS
from bench.showcase import PAGES


def test_each_page_has_a_picture_in_every_look_and_no_picture_is_left_over() -> None:
    wanted = {f"{page.name}-{look}.png" for page in PAGES if page.is_pictured for look in LOOKS}
    assert {path.name for path in FOLDER.iterdir()} == wanted
