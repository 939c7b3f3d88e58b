"""The plan of keyword schemes: order, counts, encodings, and the difference to an earlier state."""

from __future__ import annotations

import random
import tracemalloc
from itertools import islice

import pytest
from nephila.kernel.documents.scheme_schema import (
    Dates,
    NamedPlatform,
    NamedScheme,
    Part,
    PlatformUse,
    Schemes,
    SchemeSpec,
    Search,
)
from nephila_harvest.schemes import planner


def platform(name, url="http://{}.test/s?q={{keyword}}", **search):
    return NamedPlatform(name, Search(url.format(name), **search))


def scheme(name, groups, *platforms, dates=None, exclude=()):
    uses = [one if isinstance(one, PlatformUse) else PlatformUse(one) for one in platforms]
    return NamedScheme(name, SchemeSpec(uses, groups, list(exclude), dates))


def urls(state, before=None):
    return [seed.url for seed in planner.plan(state, before)]


def test_combinations_and_order():
    """A keyword of each part, optional parts also left out; platforms alternate within a combination."""
    groups = {
        "g": {"region": Part(["A", "B"]), "person": Part(["x"], optional=True)},
        "h": {"event": Part(["e"])},
    }
    state = Schemes([scheme("s", groups, "p", PlatformUse("q", ["h"]))], [platform("p"), platform("q")])
    assert urls(state) == [
        "http://p.test/s?q=A+x",
        "http://p.test/s?q=A",
        "http://p.test/s?q=B+x",
        "http://p.test/s?q=B",
        "http://p.test/s?q=e",
        "http://q.test/s?q=e",
    ]
    assert planner.count(state) == {("s", "p", "g"): 4, ("s", "p", "h"): 1, ("s", "q", "h"): 1}


def test_a_group_of_optional_parts_has_no_empty_search():
    parts = {"a": Part(["1"], optional=True), "b": Part(["2"], optional=True)}
    assert list(planner.combinations(parts)) == [("1", "2"), ("1", ""), ("", "2")]
    assert planner.combinations_count(parts) == 3


def test_the_oldest_dates_come_first_over_all_schemes():
    dated = platform("d", "http://d.test/s?q={{keyword}}&a={{from}}&b={{to}}", date_format="%Y%m%d")
    groups = {"g": {"e": Part(["x"])}}
    late = scheme("late", groups, "d", dates=Dates("2026-02-01", "2026-02-10", "7d"))
    early = scheme("early", groups, "d", "p", dates=Dates("2026-01-31", "2026-02-01"))
    assert urls(Schemes([late, early], [dated, platform("p")])) == [
        "http://p.test/s?q=x",
        "http://d.test/s?q=x&a=20260131&b=20260131",
        "http://d.test/s?q=x&a=20260201&b=20260207",
        "http://d.test/s?q=x&a=20260201&b=20260201",
        "http://d.test/s?q=x&a=20260208&b=20260210",
    ]


def test_keywords_in_the_encoding_of_the_platform():
    search = platform("p", "http://{}.test/{{keyword}}/s?w={{keyword}}&n={{size}}", encoding="gbk", joiner="&")
    state = Schemes([scheme("s", {"g": {"a": Part(["河"]), "b": Part(["a b"])}}, "p")], [search])
    assert urls(state) == ["http://p.test/%BA%D3%26a+b/s?w=%BA%D3%26a+b&n=20"]


def test_a_changed_scheme_plans_only_the_difference():
    """Any change: the difference and the earlier plan together are the new plan, and have nothing in common."""
    chance = random.Random(5)

    def state():
        words = {"region": "abcd", "event": "efgh"}
        groups = {
            name: {
                part: Part(sorted(chance.sample(words[part], chance.randint(1, 4))), optional=chance.random() < 0.3)
                for part in chance.sample(("region", "event"), chance.randint(1, 2))
            }
            for name in chance.sample(("g", "h"), chance.randint(1, 2))
        }
        dates = Dates("2026-01-01", f"2026-01-0{chance.randint(1, 5)}")
        uses = [PlatformUse(name, chance.sample(sorted(groups), 1) if chance.random() < 0.3 else []) for name in "pd"]
        platforms = [platform("p"), platform("d", "http://{}.test/{{from}}?q={{keyword}}")]
        return Schemes([scheme("s", groups, *uses, dates=dates)], platforms)

    for _ in range(300):
        before, after = state(), state()
        seeds = list(planner.plan(after, before))
        owners = {(seed.url, seed.group, seed.platform) for seed in seeds}
        known = {(seed.url, seed.group, seed.platform) for seed in planner.plan(before)}
        assert owners | known >= {(seed.url, seed.group, seed.platform) for seed in planner.plan(after)}
        same_parts = [
            name
            for name, parts in after.schemes[0].spec.groups.items()
            if list(before.schemes[0].spec.groups.get(name, {})) == list(parts)
        ]
        assert not [one for one in owners & known if one[1] in same_parts]
        assert urls(after, after) == []


def test_an_interrupted_change_is_planned_again():
    state = Schemes([scheme("s", {"g": {"e": Part(["x"])}}, "p")], [platform("p")])
    half = Schemes(state.schemes, state.platforms, incomplete=True)
    assert urls(state, half) == urls(state)


def test_another_template_is_searched_again_and_a_limit_is_not():
    spec = [scheme("s", {"g": {"e": Part(["x"])}}, "p")]
    before = Schemes(spec, [platform("p", limit=5)])
    assert urls(Schemes(spec, [platform("p", limit=9)]), before) == []
    assert urls(Schemes(spec, [platform("p", "http://{}.test/v2?q={{keyword}}")]), before) == ["http://p.test/v2?q=x"]


def test_a_plan_is_lazy():
    """A million million searches: the first ones come at once, in little memory."""
    words = [f"w{number}" for number in range(1000)]
    groups = {"g": {name: Part(words) for name in "abcd"}}
    state = Schemes([scheme("s", groups, "p")], [platform("p")])
    tracemalloc.start()
    assert len(list(islice(planner.plan(state), 10_000))) == 10_000
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert sum(planner.count(state).values()) == 10**12


def test_merged_keeps_the_schemes_that_are_not_named():
    one, two = (scheme(name, {"g": {"e": Part(["x"])}}, "p") for name in ("one", "two"))
    changed = scheme("one", {"g": {"e": Part(["y"])}}, "p")
    state = planner.merged(Schemes([one, two], [platform("p")]), [changed], [])
    assert [(found.name, found.spec.groups["g"]["e"].any) for found in state.schemes] == [
        ("one", ["y"]),
        ("two", ["x"]),
    ]


@pytest.mark.parametrize("number", [0, 1, 7])
def test_counts_equal_the_plan(number):
    chance = random.Random(number)
    groups = {
        f"g{i}": {
            f"p{j}": Part([f"w{k}" for k in range(chance.randint(1, 4))], chance.random() < 0.5) for j in range(3)
        }
        for i in range(5)
    }
    state = Schemes([scheme("s", groups, "p", "q")], [platform("p"), platform("q")])
    assert sum(planner.count(state).values()) == len(urls(state))
