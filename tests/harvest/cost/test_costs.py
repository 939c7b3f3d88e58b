"""Cost by job, tenant, site and directory, and its shares of what is known for all jobs. Pure."""

from __future__ import annotations

import pytest
from nephila_harvest.cost import FETCH_BYTES, Labels, Totals, costs
from nephila_harvest.row_costs import JobCost

JOBS = [
    JobCost("s.a", fetches=10, bytes=1000, pages=9, near_copies=1, text_chars=300, items=4),
    JobCost("s.b", fetches=5, bytes=500, pages=5, near_copies=0, text_chars=100, items=0),
    JobCost("c", fetches=5, bytes=500, pages=0, near_copies=0, text_chars=0, items=0),
]
LABELS = {"s.a": Labels("news", "s", 2.0), "s.b": Labels("news", "s", 0.5), "c": Labels("legal")}


def test_each_job_has_its_share():
    """Half of the fetches and bytes is half of the CPU; three quarters of the text are three quarters of the disk."""
    first, second, third = (
        costs(JOBS, LABELS, Totals(8.0, 4000), "job")[1:] + costs(JOBS, LABELS, Totals(8.0, 4000))[:1]
    )
    assert (first.name, first.cpu_s, first.stored_bytes) == ("s.a", 4.0, 3000)
    assert first.per_useful == {
        "requests": 2.5, "bytes": 250, "cpu_s": 1.0, "stored_bytes": 750, "browser_s": 0.5, "text_chars": 75,
    }  # fmt: skip
    assert (second.name, second.useful, second.per_useful["requests"]) == ("s.b", 5, 1.0)
    assert (third.name, third.useful, third.per_useful) == ("c", 0, {})


@pytest.mark.parametrize(
    ("by", "names", "requests", "useful"),
    [
        ("tenant", ["legal", "news"], [5, 15], [0, 9]),
        ("site", ["-", "s"], [5, 15], [0, 9]),
        ("directory", ["s.a", "s.b"], [10, 5], [4, 5]),
    ],
)
def test_jobs_are_summed_by_what_they_belong_to(by, names, requests, useful):
    found = costs(JOBS, LABELS, Totals(8.0, None), by)
    assert [one.name for one in found] == names
    assert [one.requests for one in found] == requests
    assert [one.useful for one in found] == useful
    assert all(one.stored_bytes is None for one in found)


def test_a_large_page_costs_more_than_a_small_one():
    large = JobCost("large", 1, 3 * FETCH_BYTES, 1, 0, 1, 0)
    small = JobCost("small", 1, 0, 1, 0, 1, 0)
    assert [one.cpu_s for one in costs([large, small], {}, Totals(10.0, None))] == [8.0, 2.0]


def test_without_programs_and_rows_there_is_nothing_to_divide():
    assert costs([], {}, Totals(1.0, 1)) == []
    (only,) = costs([JobCost("a", 0, 0, 0, 0, 0, 0)], {}, Totals(None, None))
    assert (only.cpu_s, only.stored_bytes, only.per_useful) == (None, None, {})
