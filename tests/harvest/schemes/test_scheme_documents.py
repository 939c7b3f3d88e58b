"""Documents of keyword schemes: each fault is one line with its place."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_document import from_json
from nephila.kernel.runtime.errors import UsageError
from nephila_harvest.schemes import applying, documents

from tests.e2e.scheme_sites import JOB, PLATFORMS, SCHEME


def load(*texts):
    found = documents.load([("f.yaml", "---\n".join(texts).encode())])
    documents.check(found)
    return found


def test_the_documents_of_the_sites():
    found = load(PLATFORMS, SCHEME, JOB)
    assert [one.name for one in found.platforms] == ["board", "stream", "api"]
    assert [rule["metadata"]["name"] for rule in found.rules][:2] == ["board.search", "board"]
    assert found.rules[0]["spec"]["pagination"]["max"] == 10
    assert found.rules[5]["spec"]["outlinks"] == []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("'{keyword}', p", "x, p", "f.yaml:6:10: spec.search.url: it has no {keyword}: every search would be the same"),
        ("'{page}'", "'{side}'", "spec.search.form.p: '{side}' has {side}, which is none of"),
        ("    limit: 10\n", "", "f.yaml:6:10: spec.search.url: it has {page} and no limit"),
        ("encoding: gbk", "encoding: gkb", "f.yaml:9:15: spec.search.encoding: 'gkb' is no encoding like"),
        ("limit: 4", "limit: 0", "f.yaml:17:11: spec.search: a list with next pages needs a limit"),
        ("links: a.hit}", "link: a.hit}", "f.yaml:11:13: unknown key 'link' in spec.results"),
        (
            "[board, stream, api]",
            "[bord]",
            "f.yaml:35:15: spec.platforms[0]: there is no platform 'bord'; did you mean",
        ),
        ("[board, stream, api]", "[{name: api, groups: [south]}]", "spec.platforms: api names the group 'south'"),
        ("[地震]", "[地震, 🌊]", "f.yaml:38:32: spec.groups.quakes.event.any[1]: '🌊' cannot be written in gbk"),
        ("any: [洪水]", "all: [洪水]", "unknown key 'all' in spec.groups.north.event"),
        ("kind: CrawlScheme", "kind: Scheme", "kind 'Scheme' is none of CrawlScheme, Platform, CrawlJob"),
        ("'http://api.test/v1", "'http://{keyword}.test/v1", "does not begin with http(s):// and a host"),
        ("q={keyword}', limit", "q={keyword}&d={from}', limit", "stream searches by date; the scheme has no dates"),
        ("exclude: [演习]", "dates: {from: 2026-02-30}", "'2026-02-30' is no date like 2026-01-31"),
        ("exclude: [演习]", "dates: {from: 2026-02-20, to: 2026-02-01}", "it ends on 2026-02-01, before 2026-02-20"),
    ],
)
def test_a_fault_is_one_line(old, new, line):
    text = "---\n".join((PLATFORMS, SCHEME, JOB))
    assert old in text
    with pytest.raises(UsageError) as raised:
        load(text.replace(old, new, 1))
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_job_of_schemes_takes_settings_and_needs_no_seeds():
    """Keys of a section that the document does not have keep the defaults of schemes."""
    job = (
        "---\napiVersion: nephila.dev/v1\nkind: CrawlJob\nmetadata: {name: schemes}\n"
        "spec: {politeness: {delay: 3s}, scope: {maxPages: 100}, render: always}\n"
    )
    found = documents.load([("a.yaml", (PLATFORMS + "---\n" + SCHEME + job).encode())])
    spec = applying.change_of(found, None, "schemes").document["spec"]
    assert spec["politeness"] == {"delay": "3s"}
    assert spec["scope"] == {"mode": "any", "maxDepth": 1, "maxPages": 100}
    assert (spec["render"], spec["traps"], spec["seeds"]) == ("always", {"off": True}, [])
    from_json({"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": "s"}, "spec": spec})
