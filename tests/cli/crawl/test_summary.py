"""The summary at the end of a crawl."""

from __future__ import annotations

import io

from nephila.cli.crawl import summary
from nephila.programs.crawl.program import Result
from nephila.programs.output_directory import Run
from nephila.storage.read.reader import Summary
from rich.console import Console


def items(result, counts):
    console = Console(file=io.StringIO(), width=120, markup=False, highlight=False)
    summary._items(console, Summary({}, {}, [], 0, 0, counts), result)
    return console.file.getvalue()


def test_items_are_counted_by_rule_and_a_rule_without_items_is_named():
    shown = items(Result(rules=["shop", "news"]), {"shop": 1200})
    assert [line.split() for line in shown.splitlines()[:3]] == [["rule", "items"], ["shop", "1,200"], ["news", "0"]]
    assert "No items by news: no page matched" in shown
    assert "nephila rules try URL --rule news" in shown


def test_a_crawl_without_rules_says_nothing_of_items():
    assert items(Result(), {}) == ""


def test_links_that_a_wider_scope_does_not_bring_back_are_named():
    lines = summary.remarks(Run(), Result(links_lost=1234))
    assert any(line.startswith("1,234 links that the earlier scope refused were not held") for line in lines)


def test_links_out_of_scope_are_counted():
    assert any(line.startswith("41 links led out of scope") for line in summary.remarks(Run(), Result(out_of_scope=41)))
    assert not any("out of scope" in line for line in summary.remarks(Run(), Result()))
