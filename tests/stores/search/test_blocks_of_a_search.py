"""A search goes through blocks, the newest first: as far as it needs, and as far as its time goes."""

from __future__ import annotations

import pytest
from nephila_stores.search import blocks
from nephila_stores.search.blocks import OutOfTimeError, newest_first
from nephila_stores.search.contract import COUNTED, RANKED


class Pages:
    """Pages with numbers; some have the words, some of these in the title."""

    def __init__(self, words, title, size=100):
        self.words, self.title, self.size = words, title, size
        self.asked = []
        self.limits = []

    def __call__(self, block, field, limit):
        self.asked.append((block, field))
        self.limits.append(limit)
        chosen = self.title if field else self.words
        here = range(min(block * self.size + self.size, 5000) - 1, max(block * self.size, 1) - 1, -1)
        return [("j", f"{number}") for number in here if chosen(number)][:limit]


def never(_):
    return False


def test_a_rare_word_is_looked_for_everywhere():
    """Titles are not asked where nothing was found."""
    pages = Pages(lambda number: number == 7, lambda number: number == 7)
    found = newest_first(4999, 100, pages)
    assert (found.keys, found.total, found.looked_at) == ([("j", "7")], 1, 0)
    assert [block for block, field in pages.asked if field] == [0]
    assert len(pages.asked) == 51


def test_a_frequent_word_needs_the_newest_pages_alone():
    """Where it is frequent in titles, too; those come first."""
    pages = Pages(lambda _: True, lambda number: number % 2 == 0)
    found = newest_first(4999, 100, pages)
    assert (found.total, found.looked_at) == (COUNTED, 0)
    assert len(found.keys) == RANKED
    assert found.keys[: RANKED // 2] == [("j", str(number)) for number in range(4998, 4798, -2)]
    assert found.keys[RANKED // 2] == ("j", "4999")
    assert min(block for block, _ in pages.asked) == 40
    assert sum(field == "title" for _, field in pages.asked) == 2


def test_a_search_without_time_ends_after_a_block(monkeypatch):
    """And says how many pages it has looked at."""
    monkeypatch.setattr(blocks, "CPU_S", -1.0)
    found = newest_first(4999, 100, Pages(lambda number: number % 10 == 0, never))
    assert (found.total, found.looked_at) == (10, 100)
    monkeypatch.setattr(blocks, "CPU_S", 9.0)
    monkeypatch.setattr(blocks, "LONGEST_S", -1.0)
    assert newest_first(4999, 100, Pages(lambda number: number % 10 == 0, never)).looked_at == 100


def test_a_block_that_was_not_searched_to_its_end_does_not_count():
    """The blocks before it do."""

    def in_block(block, field, limit):
        if block < 48:
            raise OutOfTimeError
        return [("j", str(block))]

    found = newest_first(4999, 100, in_block)
    assert (found.total, found.looked_at) == (2, 200)


@pytest.mark.parametrize("last", [1, 99, 100, 101])
def test_the_ends_of_blocks(last):
    """No page is left out, and none twice."""
    pages = Pages(lambda number: number <= last, never)
    assert newest_first(last, 100, pages).keys == [("j", str(number)) for number in range(last, 0, -1)]
