"""Content pages become records of the schemes whose keywords they have."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel import messages as m
from nephila.kernel.documents.scheme_schema import NamedScheme, Part, PlatformUse, Schemes, SchemeSpec
from nephila_harvest.schemes.matcher import KeywordMatcher, lacking
from nephila_harvest.schemes.scheme_items import evaluator_of
from nephila_harvest.schemes.scheme_records import SchemeRecords

from tests.jobs import crawl_job

NORTH = {"region": Part(["河南", "河北"]), "event": Part(["洪水"]), "person": Part(["王某"], optional=True)}
ANY = {"a": Part(["Alpha"], optional=True), "b": Part(["beta"], optional=True)}
USES = [PlatformUse("p")]
SCHEMES = [
    NamedScheme("floods", SchemeSpec(USES, {"north": NORTH}, ["演习"])),
    NamedScheme("greek", SchemeSpec(USES, {"letters": ANY, "north": {"region": Part(["河南"])}})),
]


@pytest.mark.parametrize(
    ("text", "schemes", "keywords"),
    [
        ("河南发生洪水", {"floods": ["north"], "greek": ["north"]}, ["河南", "洪水"]),
        ("河北洪水，王某称", {"floods": ["north"]}, ["河北", "洪水", "王某"]),
        ("河北", {}, ["河北"]),
        ("河南洪水演习", {"greek": ["north"]}, ["河南", "洪水"]),
        ("the BETA version", {"greek": ["letters"]}, ["beta"]),
        ("王某", {}, ["王某"]),
        ("nothing", {}, []),
    ],
)
def test_groups_that_match(text, schemes, keywords):
    found = KeywordMatcher(SCHEMES).match(text.encode(), ["p"])
    assert (found.schemes, found.keywords) == (schemes, keywords)


def test_what_a_group_lacks():
    assert lacking(NORTH, ["河北"]) == ["event"]
    assert lacking(NORTH, []) == ["region", "event"]


def completed(record):
    job = crawl_job(uid="j", schemes=Schemes(SCHEMES))
    records = SchemeRecords()
    records.update_job(job)
    records.complete(record)
    return record


def record(stage, text, *items, **fields):
    context = m.Context(stage=stage, scheme="floods", platform="p", group="north", page=fields.pop("page", 0))
    return m.Record(
        job="j",
        url_key=bytes(16),
        url="http://a.test/1",
        outcome=m.Outcome.STORED,
        title="T",
        text=text.encode(),
        fetched_at=1_767_225_600.0,
        items=[msgspec.json.encode(one) for one in items],
        context=context,
        **fields,
    )


def test_a_content_page_is_a_record():
    one = completed(record("content", "河南发生洪水"))
    (item,) = one.items
    assert msgspec.json.decode(item) == {
        "id": "00" * 16,
        "content": "河南发生洪水",
        "resource": "p",
        "url": "http://a.test/1",
        "time": "2026-01-01T00:00:00Z",
        "title": "T",
        "keywords": ["河南", "洪水"],
        "schemes": {"floods": ["north"], "greek": ["north"]},
    }
    assert (one.rule, one.rule_version >= 2**31) == ("p", True)
    search = {"stage": "content", "platform": "p", "scheme": "floods", "group": "north", "matched": True}
    version = evaluator_of(Schemes(SCHEMES)).version
    assert msgspec.json.decode(one.meta) == {"search": {**search, "version": version}}


def test_fields_of_the_rule_replace_those_of_the_extraction():
    """The text that is matched is that of the rule; empty fields replace nothing."""
    item = {"content": "河北洪水", "time": "2025-12-31", "title": None, "author": "A"}
    one = completed(record("content", "other text", item, rule="p", rule_version=7))
    found = msgspec.json.decode(one.items[0])
    assert (found["content"], found["time"], found["title"], found["author"]) == ("河北洪水", "2025-12-31", "T", "A")
    assert one.rule_version == 7


def test_a_page_without_a_match_has_no_item():
    one = completed(record("content", "河北", {"content": "河北"}))
    assert one.items == []
    assert msgspec.json.decode(one.meta)["search"]["matched"] is False


def test_items_of_a_navigation_page_are_not_stored():
    one = completed(record("navigation", "河南洪水", {"date": "2026-01-01"}, page=3))
    assert one.items == []
    assert msgspec.json.decode(one.meta)["search"]["page"] == 3


def test_a_page_of_another_job_stays_as_it_is():
    one = completed(record("other", "河南洪水", {"a": 1}))
    assert (len(one.items), one.meta) == (1, "")
