"""No rule of the specification that binds a server is without a test that names it."""

import re
from pathlib import Path

# R60 binds those who write the specification.
NOT_OURS = {60}


def test_every_rule_is_named_by_a_test() -> None:
    named: set[int] = set()
    for file in Path(__file__).parent.glob("test_*.py"):
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE):
            named |= {int(number) for number in re.findall(r"_r([0-9]+)(?=_)", name)}
    assert sorted(set(range(1, 61)) - named - NOT_OURS) == []
