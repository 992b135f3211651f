"""Proofs: what is shown leads to the root, whatever is left out, and nothing else does."""

import hashlib
import random

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from audit import verifier
from audit.merkle import root_of
from audit.proofs import leaf, pruned


def sealed(count: int) -> tuple[list[tuple[int, bytes]], dict[str, object]]:
    events = [(10 + number, hashlib.sha256(bytes([number % 251, number // 251])).digest()) for number in range(count)]
    root = root_of(events).hex()
    seal = {"n": 1, "first_id": 10, "last_id": 9 + count, "count": count, "gaps": [], "merkle_root": root}
    return events, seal


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 64, 100])
def test_any_selection_leads_to_the_root(count: int) -> None:
    events, seal = sealed(count)
    leaves = [leaf(*event) for event in events]
    chance = random.Random(count)
    for size in {1, count, *(chance.randint(1, count) for _ in range(10))}:
        places = sorted(chance.sample(range(count), size))
        hashes = [node.hex() for node in pruned(leaves, places)]
        verifier._lead_to_root(seal, {place: leaves[place] for place in places}, hashes)


def test_a_whole_seal_needs_no_hashes_and_a_single_event_few() -> None:
    events, _ = sealed(100)
    leaves = [leaf(*event) for event in events]
    assert pruned(leaves, range(100)) == []
    assert len(pruned(leaves, [50])) == 7


@pytest.mark.parametrize("change", ["leaf", "place", "hash", "one hash less", "one hash more"])
def test_nothing_else_leads_to_the_root(change: str) -> None:
    events, seal = sealed(9)
    leaves = [leaf(*event) for event in events]
    shown, hashes = {4: leaves[4]}, [node.hex() for node in pruned(leaves, [4])]
    match change:
        case "leaf":
            shown = {4: leaves[5]}
        case "place":
            shown = {5: leaves[4]}
        case "hash":
            hashes[0] = "00" * 32
        case "one hash less":
            hashes.pop()
        case "one hash more":
            hashes.append("00" * 32)
    with pytest.raises(verifier.Bad, match="do not lead to the root"):
        verifier._lead_to_root(seal, shown, hashes)


def test_the_verifier_knows_signatures_as_the_library_does() -> None:
    chance = random.Random(1)
    for length in (0, 1, 32, 1_000):
        key = Ed25519PrivateKey.from_private_bytes(chance.randbytes(32))
        public, message = key.public_key().public_bytes_raw(), chance.randbytes(length)
        signature = key.sign(message)
        assert verifier.is_signed(public, signature, message)
        assert not verifier.is_signed(public, signature, message + b"x")
        for place in range(0, 64, 7):
            forged = bytearray(signature)
            forged[place] ^= 1
            assert not verifier.is_signed(public, bytes(forged), message)


def test_a_signature_has_one_form_only() -> None:
    """Adding the group's order to the second half makes another text that lenient verifiers take."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    public, signature = key.public_key().public_bytes_raw(), key.sign(b"x")
    other = int.from_bytes(signature[32:], "little") + verifier.ORDER
    assert not verifier.is_signed(public, signature[:32] + other.to_bytes(32, "little"), b"x")
    assert not verifier.is_signed(b"\xff" * 32, signature, b"x")
    assert not verifier.is_signed(public, signature[:63], b"x")
