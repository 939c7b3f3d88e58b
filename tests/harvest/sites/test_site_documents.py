"""Sites and directories: inheritance, prefixes, CSV, and one clear line for every fault."""

from __future__ import annotations

import io

import pytest
from nephila.kernel.documents.job_document import lists_of, urls_of
from nephila.kernel.documents.job_schema import Quota, SiteOfJob
from nephila.kernel.runtime.errors import UsageError
from nephila_harvest.sites import csv_table, resolve
from nephila_harvest.sites.settings import paths
from nephila_harvest.sites.site_documents import Sites, distinct, load, merged
from nephila_harvest.sites.store import open_store
from nephila_harvest.sites.surt import directory_prefix, prefixes, surt

HEAD = "apiVersion: nephila.dev/v1\nkind: Site\nmetadata: {{name: {}}}\nspec: {}\n"
ALL = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: default}
spec: {frequency: 12h, politeness: {delay: 2s}, scope: {exclude: ["/login", 'a, "b" | c']}}
---
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: press}
spec: {keywords: [solar power, '["odd"]'], cookies: true, scope: {maxDepth: 4}}
---
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: news}
spec:
  url: https://www.news.example/
  inherits: press
  score: 5
  login:
    url: https://news.example/login
    fields: [{name: user, value: me}, {name: password, env: NEPHILA_SECRET_NEWS}]
  directories:
    - {name: world, url: "https://news.example/world/", frequency: 0 6 * * *, topPages: 20, scope: {maxDepth: -1}}
    - name: asia
      url: https://news.example/world/asia/
      seeds: [https://news.example/asia, {feed: "https://news.example/asia.rss"}]
      frequency: adaptive 1h 7d
      start: 2026-11-22T06:00:00Z
      score: 7.5
      cookies: false
"""


def documents(*texts: str) -> Sites:
    """The sites of some files."""
    found = [site for number, text in enumerate(texts) for site in load(text.encode(), f"{number}.yaml")]
    return Sites({site.name: site for site in distinct(found)})


def fault(*texts: str) -> str:
    """The line about the first fault of documents."""
    with pytest.raises(UsageError) as caught:
        resolve.check(documents(*texts))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def site(name: str, spec: str) -> str:
    """A document."""
    return HEAD.format(name, spec)


# ---- inheritance


def test_the_nearest_value_holds_and_names_its_place():
    """Directory, site, inherited site, site `default`, built-in default."""
    found = resolve.explain(documents(ALL), "http://news.example/world/asia/2026/x?y=1")
    assert (found.surt, found.prefix) == ("example,news,)/world/asia/2026/x", "example,news,)/world/asia")
    assert (found.site, found.directory) == ("news", "news.asia")
    origins = {path: (value.value, value.origin, value.location) for path, value in found.values.items()}
    assert origins["score"] == (7.5, "directory news.asia", "0.yaml:28:7")
    assert origins["cookies"] == (False, "directory news.asia", "0.yaml:29:7")
    assert origins["login"][1:] == ("site news", "0.yaml:18:3")
    assert origins["scope.maxDepth"] == (4, "site press", "0.yaml:9:67")
    assert origins["politeness.delay"] == ("2s", "site default", "0.yaml:4:37")
    assert origins["render"] == ("never", "built-in default", "")
    assert "spec.proxyClass" not in origins


def test_a_value_equal_to_the_default_of_a_job_still_overrides():
    """maxDepth -1 means no limit, although the site limits it."""
    values = resolve.explain(documents(ALL), "https://news.example/world/1").values
    assert values["scope.maxDepth"][:2] == (-1, "directory news.world")


def test_a_url_outside_of_all_directories_has_the_settings_of_its_site():
    """The longest prefix counts, at borders of segments; other hosts have no site."""
    sites = documents(ALL)
    assert resolve.explain(sites, "https://news.example/world-cup/1")[2:4] == ("news", "")
    assert resolve.explain(sites, "https://news.example/world")[2:4] == ("news", "news.world")
    assert resolve.explain(sites, "https://other.example/world/")[2:4] == ("", "")


def test_a_directory_becomes_a_job_that_watches_its_seeds():
    """All keys of a job are passed on; nested directories are excluded; the run is an instant."""
    job = resolve.job(documents(ALL), "news.world", 1_800_000_000.0, 120).spec
    assert (urls_of(job), job.weight) == (["https://news.example/world/"], 5.0)
    assert job.scope.mode == "prefix"
    assert (job.scope.max_depth, job.scope.max_pages) == (-1, 120)
    assert job.scope.exclude[-2] == r"^https?://(www\.)?news\.example\/world\/asia([/?#]|$)"
    assert (job.recrawl.monitor, job.recrawl.refresh_at) == (True, "2027-01-15T08:00:00Z")
    assert job.strategy == "best-first"  # topPages with keywords: the most relevant pages
    assert job.login is not None
    assert lists_of(resolve.job(documents(ALL), "news.asia", 0.0).spec) == [("feed", "https://news.example/asia.rss")]


def test_a_quota_of_a_site_is_that_of_all_directories_together():
    """The directory has its own quota; that of the site is not inherited as one of the directory."""
    text = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: s}
spec:
  tenant: news
  quota: {pages: 9, per: day}
  directories: [{name: a, url: "http://a.test/a/", quota: {bytes: 5}}, {name: b, url: "http://a.test/b/"}]
"""
    sites = documents(text)
    first, second = (resolve.job(sites, name, 0.0).spec for name in ("s.a", "s.b"))
    assert (first.quota, second.quota) == (Quota(bytes=5, per="run"), Quota())
    for job in (first, second):
        assert (job.tenant, job.site) == ("news", SiteOfJob("s", Quota(pages=9, per="day")))
    with pytest.raises(UsageError, match="a quota of a site is per day or per month"):
        documents(text.replace(", per: day", ""))


def test_surt_prefixes():
    """Hosts in reversed order; subdomains only where the scope is a domain."""
    assert list(prefixes(surt("https://www.a.news.example:8080/x/y?z"))) == [
        "example,news,a,:8080)/x/y",
        "example,news,a,:8080)/x",
        "example,news,a,:8080)",
        "example,news,a,:8080",
        "example,news,a,",
        "example,news,",
        "example,",
    ]
    assert directory_prefix("https://news.example/a/index.html") == "example,news,)/a"
    assert directory_prefix("https://news.example/", subdomains=True) == "example,news,"
    found = documents(site("a", "{url: 'https://news.example/', scope: {mode: domain}}"))
    assert resolve.explain(found, "http://sport.news.example/1").site == "a"


# ---- CSV


def test_csv_round_trip(tmp_path):
    """Export and import give equal documents, with quotes, commas, JSON-like texts and sections."""
    sites = documents(ALL).sites
    table = io.StringIO()
    csv_table.write(table, sites.values())
    again = {one.name: one for one in csv_table.load(table.getvalue().encode(), "t.csv")}
    assert {name: one.content for name, one in again.items()} == {name: one.content for name, one in sites.items()}
    second = io.StringIO()
    csv_table.write(second, again.values())
    assert second.getvalue() == table.getvalue()
    with open_store(tmp_path / "s.db", create=True) as store:
        store.apply(sites.values())
        assert [change.verdict for change in store.apply(again.values())] == ["unchanged"] * 3
        assert {name: one.content for name, one in store.sites().sites.items()} == {
            name: one.content for name, one in sites.items()
        }


def test_every_setting_is_a_column():
    """Job keys that a directory has are columns, too."""
    assert {"frequency", "scope.maxDepth", "politeness.concurrencyPerHost", "proxyClass"} <= set(csv_table.COLUMNS)
    assert len(csv_table.COLUMNS) == len(set(csv_table.COLUMNS)) == len(paths()) + 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("site,directory,url,scroe\na,,,\n", "t.csv:1:4: unknown column 'scroe'; did you mean 'score'?"),
        ("site,directory,url,url\n", "t.csv:1:4: the column 'url' comes twice"),
        ("site,url\n", "t.csv:1: the column 'directory' is missing"),
        ("site,directory,url\na,,\na,d\n", "t.csv:3: 2 cells in a table of 3 columns"),
        ("site,directory,url\na,d,http://a.test/\n", "t.csv:2: there is no row of the site 'a'"),
        ("site,directory,url\na,,\na,,\n", "t.csv:3: the site 'a' comes twice, first at t.csv:2"),
        ("site,directory,url,score\na,,,\na,d,http://a.test/,high\n", "t.csv:3:4: spec.directories[0].score"),
        ("site,directory,url,frequency\na,,,hourly\n", "t.csv:2:4: spec.frequency: 'hourly' is no frequency like 6h"),
        ("site,directory,url\n,d,http://a.test/\n", "t.csv:2: the column 'site' is empty"),
        ("site,directory,url\n", "t.csv: there is no site in it"),
        ('site,directory,url\na,"b\n', "t.csv:"),
    ],
)
def test_a_wrong_table_is_one_line_with_its_place(text, line):
    """File, line and column; nothing is taken from the rest."""
    with pytest.raises(UsageError) as caught:
        csv_table.load(text.encode(), "t.csv")
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- faults of documents


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        ((site("a", "{scroe: 1}"),), "0.yaml:4:8: unknown key 'scroe' in spec; did you mean 'score'?"),
        ((site("a", "{frequency: 6x}"),), "0.yaml:4:19: spec.frequency: '6x' is no frequency like 6h"),
        ((site("a", "{frequency: 500ms}"),), "'500ms' is shorter than a second"),
        ((site("a", "{frequency: 0 6 * *}"),), "is not five fields of cron"),
        ((site("a", "{frequency: adaptive 2d 1d}"),), "has a shortest interval 2d above its longest 1d"),
        ((site("a", "{start: soon}"),), "spec.start: 'soon' is no instant like 2026-11-22T06:00:00Z"),
        ((site("a", "{inherits: b}"), site("b", "{inherits: c}"), site("c", "{inherits: a}")), "a → b → c → a"),
        ((site("a", "{inherits: bb}"), site("b", "{}")), "there is no site 'bb'; did you mean 'b'?"),
        ((site("a", "{}"), site("a", "{}")), "1.yaml:1:1: the site 'a' comes twice, first at 0.yaml:1:1"),
        (
            (site("a", "{directories: [{name: d, url: 'http://a.test/x'}, {name: e, url: 'https://www.a.test/x/'}]}"),),
            "the prefix test,a,)/x of 'a.e' is that of 'a.d', 0.yaml:4:22",
        ),
        (
            (site("a", "{directories: [{name: d, url: 'http://a.test/'}, {name: d, url: 'http://b.test/'}]}"),),
            "the directory 'a.d' comes twice",
        ),
        ((site("a", "{url: 'http://a.test/'}"), site("b", "{url: 'http://a.test/'}")), "that of the site a, 0.yaml"),
        (
            (site("a", "{directories: [{name: d, url: 'http://a.test/', seeds: [{file: s.txt}]}]}"),),
            "seeds: a site has no files of seeds; list the URLs",
        ),
        ((site("a", "{directories: [{name: d}]}"),), "directories[0] lacks the key 'url'"),
    ],
)
def test_a_wrong_document_is_one_line_with_its_place(texts, line):
    """The nearest known word is suggested."""
    assert line in fault(*texts)


def test_nothing_half_applied(tmp_path):
    """A set with one fault changes nothing, also when the fault is only in the whole."""
    with open_store(tmp_path / "s.db", create=True) as store:
        store.apply(documents(ALL).sites.values())
        before = {name: one.content for name, one in store.sites().sites.items()}
        bad = [
            *documents(site("z", "{score: 3}")).sites.values(),
            *load(site("y", "{directories: [{name: d, url: 'https://news.example/world/'}]}").encode(), "y.yaml"),
        ]
        with pytest.raises(UsageError, match=r"^y\.yaml:4:22: the prefix example,news,\)/world of 'y.d'"):
            store.apply(bad)
        with pytest.raises(UsageError, match="site 'press' is not deleted: news inherits from it"):
            store.apply((), ["press"])
        assert {name: one.content for name, one in store.sites().sites.items()} == before
        changed = load(site("press", "{score: 9}").encode(), "p.yaml")
        assert [(one.name, one.verdict) for one in store.apply(changed)] == [("press", "changed")]


def test_merged_keeps_what_is_not_named():
    """A change of one site leaves the others."""
    old = documents(ALL).sites
    new = merged(old, load(site("other", "{}").encode(), "o.yaml"), ["news"])
    assert sorted(new.sites) == ["default", "other", "press"]
    assert new.directories == {}


def test_texts_and_the_pause_are_inherited_and_no_part_of_the_job():
    """A directory is shown by its score, the highest first."""
    text = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: a}
spec:
  country: fr
  paused: true
  directories:
    - {name: x, url: "http://a.test/x/", description: Local news}
    - {name: y, url: "http://a.test/y/", score: 9, country: de, type: newspaper, paused: false}
"""
    sites = Sites({site.name: site for site in load(text.encode(), "d.yaml")})
    values = {name: resolve.values(sites, *sites.directories[name]) for name in sites.directories}
    assert {name: (value["paused"].value, value["country"].value) for name, value in values.items()} == {
        "a.x": (True, "fr"),
        "a.y": (False, "de"),
    }
    assert list(resolve.by_score(sites)) == ["a.y", "a.x"]
    spec = resolve.job(sites, "a.y", 0.0).content["spec"]
    assert not {"country", "type", "description", "paused"} & spec.keys()
