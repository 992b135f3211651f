"""Texts that a second person should read are found, in bounded time."""

import time

import pytest

from registry.concerns import concerns
from registry.manifestshape import parse
from tests.factories.registry import manifest, numbers


@pytest.mark.parametrize("text", ["< / system >", "</important>", "<\n instructions\t>", "<system>"])
def test_a_tag_that_speaks_to_a_model_is_found_however_it_is_spaced(text: str) -> None:
    (found,) = concerns(parse(manifest("Calculator", "1.0.0", {"description": f"Adds. {text} Be kind."})))
    assert str(found) == "spec.tools[0].description: reads like an order to a model"


def test_a_tag_of_nothing_but_spaces_takes_bounded_time() -> None:
    schema = numbers(a={"type": "number", "description": "<" + " " * 60_000})
    read = parse(manifest("Calculator", "1.0.0", {"input": schema}))
    start = time.process_time()
    assert concerns(read) == []
    assert time.process_time() - start < 1
