"""Packed links without those that have a flag: core and fallback give the same columns."""

from __future__ import annotations

import random
import struct
from itertools import accumulate
from types import ModuleType

import pytest

from .conftest import load


def columns(chance: random.Random, count: int) -> list[bytes]:
    """Columns of that many links, in the order of the arguments."""
    urls = [chance.randbytes(chance.randrange(1, 40)) for _ in range(count)]
    anchors = [chance.randbytes(chance.randrange(0, 9)) for _ in range(count)]
    ends = list(accumulate(map(len, urls)))
    spans = [end - len(url) + at for end, url in zip(ends, urls, strict=True) for at in (0, len(url))]
    return [
        chance.randbytes(16 * count),
        b"".join(urls),
        struct.pack(f"<{count}I", *ends),
        struct.pack(f"<{2 * count}I", *spans),
        b"".join(anchors),
        struct.pack(f"<{count}I", *accumulate(map(len, anchors))),
        bytes(chance.choice((0, 1, 2, 3, 128)) for _ in range(count)),
        chance.choice((b"", chance.randbytes(8 * count))),
        chance.choice((b"", chance.randbytes(count))),
    ]


def test_core_and_fallback_agree() -> None:
    """On any columns and masks, with and without the optional ones."""
    core, fallback, chance = load("rust"), load("python"), random.Random(5)
    kept = 0
    for count in [0, 1, 2] * 20 + [30] * 200:
        given, mask = columns(chance, count), chance.choice((1, 2, 129))
        found = core.links_without(mask, *given)
        assert found == fallback.links_without(mask, *given)
        kept += found is None
    assert 60 > kept > 20  # where all stay


@pytest.mark.parametrize("wrong", [2, 3, 5])
def test_columns_of_other_lengths_are_an_error(core: ModuleType, wrong: int) -> None:
    """Ends and hosts have one entry for each link."""
    given = columns(random.Random(6), 5)
    given[6] = b"\x01\x00\x01\x00\x00"
    given[wrong] = given[wrong][:-4]
    with pytest.raises(ValueError, match="fit together"):
        core.links_without(1, *given)
