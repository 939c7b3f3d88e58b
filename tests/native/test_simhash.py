"""Simhash and the index of simhashes: core and fallback agree, and both keep the frozen definition."""

from __future__ import annotations

import random

import pytest
from nephila.native import IMPLEMENTATION, NearCopyIndex, simhash
from nephila.native.fallback import near_copies as reference

ALPHABETS = (
    "abcdefghij KLMNOP.,-0123456789",
    "äöüßéèñ çabcdef гдежз ",
    "日本語の文章を比較する。、ひらがなカタカナ ",
    "ภาษาไทย မြန်မာ 한국어 ",
    "\U0001f600\U00020000\u00a0\u2014\ufeff ab",
)
FROZEN = {
    "The quick brown fox jumps over the lazy dog. " * 4: 0xEAC7E67DFEC6B4E0,
    "文章を文字ごとに比較する。" * 3: 0xB16B2FE010B54592,
}


def texts(seed: int, number: int) -> list[str]:
    """Random texts of all alphabets."""
    rng = random.Random(seed)
    return ["".join(rng.choices("".join(rng.sample(ALPHABETS, 2)), k=rng.randrange(400))) for _ in range(number)]


@pytest.mark.skipif(IMPLEMENTATION != "rust", reason="compares the core with the fallback")
def test_the_core_and_the_reference_agree() -> None:
    for text in texts(1, 400):
        assert simhash(text.encode()) == reference.simhash(text.encode()), text


@pytest.mark.parametrize(("text", "expected"), FROZEN.items())
def test_the_definition_is_frozen(text: str, expected: int) -> None:
    assert simhash(text.encode()) == expected


def test_case_and_punctuation_are_no_difference_and_a_short_text_has_no_simhash() -> None:
    words = [f"word{number}" for number in range(30)]
    assert simhash(" ".join(words).encode()) == simhash(" -- ".join(words).upper().encode()) != 0
    assert simhash(" ".join(words[:15]).encode()) == 0
    assert simhash(b"") == 0


def test_similar_texts_are_near_and_others_are_far() -> None:
    words = [f"word{number}" for number in range(1000)]
    near = simhash(" ".join(words).encode()) ^ simhash(" ".join([*words[:500], "x", *words[501:]]).encode())
    far = simhash(" ".join(words).encode()) ^ simhash(" ".join(words[::-1]).encode())
    assert near.bit_count() <= 4 < 15 < far.bit_count()


@pytest.mark.parametrize("entries", [3000, 50_000])
def test_the_index_finds_every_entry_within_three_bits(entries: int) -> None:
    rng = random.Random(entries)
    index = NearCopyIndex(2 * entries)
    kept = [(rng.getrandbits(64), rng.getrandbits(20)) for _ in range(1500)]
    for one, page in kept:
        index.add(one, page)
    assert len(index) == len(kept)
    for one, page in kept:
        for bits in range(4):
            query = one
            for bit in rng.sample(range(64), bits):
                query ^= 1 << bit
            assert page in {found for _, found in index.near(query, bits)}


def test_the_index_keeps_the_newest_of_a_bucket_within_its_memory() -> None:
    index = NearCopyIndex(16)
    for page in range(100):
        index.add((page + 1) << 40, page)
    assert len(index) == 16
    assert 99 in {page for _, page in index.near(100 << 40, 3)}
    assert 0 not in {page for _, page in index.near(1 << 40, 0)}
    assert IMPLEMENTATION != "rust" or index.nbytes == 16 * 16


def test_an_equal_entry_is_held_once() -> None:
    index = NearCopyIndex(100)
    for _ in range(5):
        index.add(12345, 7)
    assert len(index) == 1
    assert index.near(12345, 3) == [(0, 7)]


def test_impossible_sizes_and_distances_are_refused() -> None:
    with pytest.raises(ValueError, match="entries must be 1"):
        NearCopyIndex(0)
    with pytest.raises(ValueError, match="at most 3"):
        NearCopyIndex(1).near(1, 4)
