"""Some of the packed links of a message: core and fallback give the same columns."""

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
    """On any columns and choices, with and without the optional ones."""
    core, fallback, chance = load("rust"), load("python"), random.Random(5)
    for count in [0, 1, 2] * 20 + [30] * 200:
        given = columns(chance, count)
        if chance.random() < 0.3:  # seeds of a file
            given[4:] = [b""] * 5
        chosen = [at for at in range(count) if chance.random() < 0.5]
        assert core.links_at(chosen, *given) == fallback.links_at(chosen, *given)
        assert core.links_at(list(range(count)), *given) == tuple(given)


def test_the_places_are_those_in_the_new_columns(core: ModuleType) -> None:
    given = columns(random.Random(7), 9)
    chosen = [1, 2, 7]
    urls, ends, spans = core.links_at(chosen, *given)[1:4]
    all_ends = [0, *struct.unpack("<9I", given[2])]
    parts = [given[1][all_ends[at] : all_ends[at + 1]] for at in chosen]
    assert urls == b"".join(parts)
    hosts = struct.unpack("<6I", spans)
    new_ends = [0, *struct.unpack("<3I", ends)]
    for n, at in enumerate(chosen):
        first, last = struct.unpack_from("<2I", given[3], 8 * at)
        assert (hosts[2 * n] - new_ends[n], hosts[2 * n + 1] - new_ends[n]) == (
            first - all_ends[at],
            last - all_ends[at],
        )


@pytest.mark.parametrize("wrong", [2, 3, 5])
def test_columns_of_other_lengths_are_an_error(core: ModuleType, wrong: int) -> None:
    """Ends and hosts have one entry for each link."""
    given = columns(random.Random(6), 5)
    given[wrong] = given[wrong][:-4]
    with pytest.raises(ValueError, match="fit together"):
        core.links_at([0, 3], *given)


def test_an_index_beyond_the_links_is_an_error(core: ModuleType) -> None:
    with pytest.raises(ValueError, match="fit together"):
        core.links_at([5], *columns(random.Random(6), 5))
