"""What is sealed opens only with its key and only in its row."""

from typing import Any

import pytest

from policy.sealedbox import Unsealable, seal, unseal


def test_what_was_sealed_comes_back_and_is_not_readable_meanwhile() -> None:
    sealed = seal(b"a secret", bound_to="row 1")
    assert b"a secret" not in sealed
    assert unseal(sealed, bound_to="row 1") == b"a secret"


def test_the_same_text_sealed_twice_looks_different() -> None:
    assert seal(b"x", bound_to="row 1") != seal(b"x", bound_to="row 1")


def test_a_copy_in_another_row_does_not_open() -> None:
    with pytest.raises(Unsealable):
        unseal(seal(b"x", bound_to="row 1"), bound_to="row 2")


def test_no_flipped_bit_goes_unnoticed() -> None:
    sealed = seal(b"x", bound_to="row 1")
    for position in range(len(sealed)):
        altered = bytearray(sealed)
        altered[position] ^= 1
        with pytest.raises(Unsealable):
            unseal(bytes(altered), bound_to="row 1")


@pytest.mark.parametrize("rubbish", [b"", b"\0", b"\xff", b"\x02t1", b"\x02t1" + b"n" * 12])
def test_rubbish_does_not_open(rubbish: bytes) -> None:
    with pytest.raises(Unsealable):
        unseal(rubbish, bound_to="row 1")


def test_an_older_key_still_opens_and_the_newest_seals(settings: Any) -> None:
    old = seal(b"x", bound_to="row 1")
    settings.PLACET_SEALING_KEYS = {"t2": b"n" * 32, **settings.PLACET_SEALING_KEYS}
    assert unseal(old, bound_to="row 1") == b"x"
    assert seal(b"x", bound_to="row 1")[1:3] == b"t2"


def test_a_key_that_is_gone_is_named_as_the_reason(settings: Any) -> None:
    old = seal(b"x", bound_to="row 1")
    settings.PLACET_SEALING_KEYS = {"t9": b"n" * 32}
    with pytest.raises(Unsealable, match="PLACET_SEALING_KEYS"):
        unseal(old, bound_to="row 1")
