"""The strata of a stored sample: as many as it has rows, not as many as the crawl has."""

from __future__ import annotations

from nephila_harvest.audit.sampling import Candidate, draw
from nephila_harvest.audit.store import OTHERS, Label, SampleInfo, open_store


def page(number, host):
    """A page of a host."""
    return Candidate("j", f"{number:032x}", "", -1, "v", f"http://h{host}.test/", "")


def test_strata_without_a_row_are_one(tmp_path):
    """Their sizes count, and a screen reads none of them."""
    pages = [page(number, number % 900) for number in range(999)]
    with open_store(tmp_path, create=True) as store:
        store.add(SampleInfo("s", "2026", "pages", "directory", "x"), draw(lambda: iter(pages), "directory", 5, "x"))
        one, other, *_ = store.drawn("s")
        store.label([(one.candidate, Label("wrong", "old", "p", "t")), (other.candidate, Label("right", "", "p", "t"))])
        counts = store.counts("s")
    assert len(counts) == 6
    assert {found.name: (found.size, found.sampled) for found in counts}[OTHERS] == (989, 0)
    assert sum(found.size for found in counts) == 999
    assert [(found.labelled, found.wrong) for found in counts if found.name == one.stratum] == [(1, 1)]
    assert sum((found.reasons for found in counts[1:]), counts[0].reasons) == {"old": 1}
    assert sum(found.right for found in counts) == 1


def test_a_sample_of_all_strata_has_no_others(tmp_path):
    """Two strata, five rows."""
    pages = [page(number, number % 2) for number in range(10)]
    with open_store(tmp_path, create=True) as store:
        store.add(SampleInfo("s", "2026", "pages", "directory", "x"), draw(lambda: iter(pages), "directory", 5, "x"))
        assert [(found.name, found.size) for found in store.counts("s")] == [("h0.test/", 5), ("h1.test/", 5)]
