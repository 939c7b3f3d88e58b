"""A search goes through blocks of pages, the newest first, until it has enough or has used its time.

Invariant: work is bounded by one block beyond the limits of time, regardless of the words: a block is what an index
searches at once. Pages with all words in the title come first, if they are in the blocks that were searched.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from nephila_stores.search.contract import COUNTED, CPU_S, LONGEST_S, RANKED, Matches

Key = tuple[str, str]
InBlock = Callable[[int, str, int], list[Key]]
"""(block, field in which all words are or the empty string, limit) → the newest pages of a block first."""


class OutOfTimeError(Exception):
    """The block was not searched to its end."""


def newest_first(last: int, size: int, in_block: InBlock) -> Matches:
    """The pages of a search. `last`: number of the newest page; `size`: pages of a block."""
    until, cpu_until = time.monotonic() + LONGEST_S, time.thread_time() + CPU_S
    titles: list[Key] = []
    matches: list[Key] = []
    top = last + 1
    for block in range(last // size, -1, -1):
        if top <= last and (time.monotonic() > until or time.thread_time() > cpu_until):
            break
        try:
            here = in_block(block, "", COUNTED - len(matches)) if len(matches) < COUNTED else None
            matches += here or ()
            # Where no page has the words, none has them in its title.
            if here != [] and len(titles) < RANKED // 2:
                titles += in_block(block, "title", RANKED // 2 - len(titles))
        except OutOfTimeError:
            break
        top = block * size
        if len(matches) >= COUNTED and len(titles) >= RANKED // 2:
            break
    whole = len(matches) >= COUNTED or not top
    keys = dict.fromkeys(titles) | dict.fromkeys(matches)
    return Matches([*keys][:RANKED], max(len(matches), len(titles)), 0 if whole else max(1, last + 1 - top))
