"""Sites over the control API: one line for a fault, no lost change, an entry in the log."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from nephila.kernel.messages import UrlState
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila_control import api, requests, system_types
from nephila_control.access.caller import Caller
from nephila_control.access.change_log import FileChangeLog
from nephila_control.access.guard import guarded
from nephila_control.access.roles import Role
from nephila_control.operations import Operations
from nephila_control.site_types import ApplyDirectory, ApplySites, DeleteDirectory, DeleteSite, SiteName
from nephila_harvest.sites.planner import DirectoryProgress
from nephila_harvest.sites.store import DirectoryRun, RunEnd, open_store

ADMIN = Caller("anna", Role.ADMIN)


def site(name="news", *directories, **spec):
    """A document; each directory is the last part of its URL."""
    if directories:
        spec["directories"] = [{"name": one, "url": f"http://{name}.test/{one}/"} for one in directories]
    return {"apiVersion": "nephila.dev/v1", "kind": "Site", "metadata": {"name": name}, "spec": spec}


def control_of(path):
    """The operations of a program without jobs; the file of its sites is `path`."""
    clock = ManualClock()
    backend = SimpleNamespace(
        clock=clock,
        rows=None,
        log=FileChangeLog(path.parent, clock),
        sites_file=path,
        own_jobs=None,
        tenants=(),
        check_change=lambda: None,
        jobs=dict,
    )
    return Operations(backend)


@pytest.fixture
def control(tmp_path):
    """See `control_of`."""
    return control_of(tmp_path / "sites.db")


async def apply(control, *sites, **values):
    """The changes of one request."""
    return (await control.apply_sites(ApplySites(sites=list(sites), **values))).sites


async def names(control):
    """Names of all sites."""
    return [one.name for one in (await control.list_sites(requests.Empty())).sites]


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({**site(), "kind": "Rule"}, r"sites\[1\]\.kind"),
        (site("b", topPage=3), r"sites\[1\]\.spec.*topPage"),
        (site("b", "x", frequency="sometimes"), r"sites\[1\]\.spec\.frequency"),
        (site("b", inherits="c"), "there is no site 'c'"),
        (site("b", "x", "x"), "comes twice"),
        (site("a"), "comes twice"),
    ],
)
async def test_a_request_with_one_fault_changes_nothing(control, document, line):
    """One line names the key."""
    with pytest.raises(UsageError, match=line) as caught:
        await apply(control, site("a"), document)
    assert "\n" not in str(caught.value)
    assert await names(control) == []


async def test_questions_about_no_sites_create_no_file(control, tmp_path):
    """A request that is refused creates none either."""
    assert await names(control) == []
    for work in (control.get_site(SiteName(name="a")), control.delete_site(DeleteSite(name="a"))):
        with pytest.raises(api.NotFound, match="there is no site 'a'"):
            await work
    assert list(tmp_path.iterdir()) == []


async def test_a_site_that_was_changed_since_it_was_read_is_not_overwritten(control):
    """By its etag; without one the last change counts."""
    (first,) = await apply(control, site("a", "x"))
    (second,) = await apply(control, site("a", "x", "y"), etags={"a": first.etag})
    for work in (
        apply(control, site("a"), etags={"a": first.etag}),
        apply(control, site("a"), etags={"a": ""}),
        control.delete_site(DeleteSite(name="a", etag=first.etag)),
        control.delete_directory(DeleteDirectory(site="a", name="x", etag=first.etag)),
        control.apply_directory(
            ApplyDirectory(site="a", directory={"name": "z", "url": "http://a.test/z/"}, etag=first.etag)
        ),
    ):
        with pytest.raises(UserError, match=second.etag):
            await work
    with pytest.raises(UserError, match="was deleted since"):
        await apply(control, site("b"), etags={"b": first.etag})
    assert await names(control) == ["a"]
    assert (await apply(control, site("a", "x")))[0].etag == first.etag
    assert (await apply(control, site("b"), etags={"b": ""}))[0].verdict == "created"


async def test_prune_deletes_the_sites_that_are_not_in_the_request(control):
    """In the same transaction."""
    await apply(control, site("a", "x"), site("b"))
    changes = await apply(control, site("b"), site("c"), prune=True)
    assert [(one.name, one.verdict) for one in changes] == [("b", "unchanged"), ("c", "created"), ("a", "deleted")]
    assert await names(control) == ["b", "c"]


async def test_a_site_whose_settings_others_inherit_is_not_deleted(control):
    """Unless they go with it."""
    await apply(control, site("base"), site("a", inherits="base"))
    with pytest.raises(UserError, match="site 'base' is not deleted: a inherits from it"):
        await control.delete_site(DeleteSite(name="base"))
    await apply(control, prune=True)
    assert await names(control) == []


async def test_a_deletion_names_the_directories_with_an_open_run(control, tmp_path):
    """`nephila sites run` ends them."""
    await apply(control, site("a", "x", "y"))
    with open_store(tmp_path / "sites.db") as store:
        store.begin(DirectoryRun("a.y", 1.0, 1.0, 0, 0, 0), DirectoryProgress(UrlState("sites", b"k" * 16), 0.0, 0.0))
    change = await control.delete_site(DeleteSite(name="a"))
    assert (change.removed, change.running) == (["a.x", "a.y"], ["a.y"])


async def test_unknown_directories_and_sites_are_not_found(control):
    """Nothing is created."""
    await apply(control, site("a", "x"))
    with pytest.raises(api.NotFound, match="site 'a' has no directory 'y'"):
        await control.delete_directory(DeleteDirectory(site="a", name="y"))
    with pytest.raises(api.NotFound, match="there is no site 'b'"):
        await control.apply_directory(ApplyDirectory(site="b", directory={"name": "y", "url": "http://b.test/"}))
    with pytest.raises(UsageError, match=r"site a\.spec\.directories\[1\]"):
        await control.apply_directory(ApplyDirectory(site="a", directory={"name": "y"}))


async def test_a_directory_is_replaced_where_it_stands(control):
    """The others keep their documents."""
    await apply(control, site("a", "x", "y"))
    changed = {"name": "x", "url": "http://a.test/new/", "score": 3}
    answer = await control.apply_directory(ApplyDirectory(site="a", directory=changed))
    assert (answer.verdict, answer.added, answer.removed) == ("changed", [], [])
    document = (await control.get_site(SiteName(name="a"))).document
    assert document["spec"]["directories"] == [{**changed, "score": 3.0}, {"name": "y", "url": "http://a.test/y/"}]


async def test_changes_of_sites_are_in_the_log(control):
    """With the values before and after; secrets are hidden."""
    own = guarded(control, ADMIN)
    await apply(own, site("a", "x", score=1))
    await apply(own, site("a", "x", score=2))
    await own.apply_directory(ApplyDirectory(site="a", directory={"name": "x", "url": "http://a.test/x/", "score": 4}))
    await own.delete_directory(DeleteDirectory(site="a", name="x"))
    await own.delete_site(DeleteSite(name="a"))
    entries = (await own.list_control_log(system_types.ListControlLog())).entries
    assert [(one.operation, one.subject, one.change) for one in reversed(entries)][1:] == [
        ("apply_sites", "sites a", "a.spec.score: 1.0 → 2.0"),
        ("apply_directory", "directory a.x", "score: – → 4.0"),
        ("delete_directory", "directory a.x", "deleted"),
        ("delete_site", "site a", "deleted"),
    ]


async def test_a_preview_says_what_an_apply_does_and_changes_nothing(control, tmp_path):
    await apply(control, site("a", "x"), site("b", "y"))
    before = (await control.list_sites(requests.Empty())).sites
    request = ApplySites(sites=[site("a", "x", "z"), site("c")], delete=["b"])
    previewed = (await control.preview_sites(request)).sites
    assert (await control.list_sites(requests.Empty())).sites == before
    assert [(change.name, change.verdict) for change in previewed] == [
        ("a", "changed"),
        ("c", "created"),
        ("b", "deleted"),
    ]
    assert (await control.apply_sites(request)).sites == previewed
    assert await names(control) == ["a", "c"]


async def test_a_preview_creates_no_file(control, tmp_path):
    (change,) = (await control.preview_sites(ApplySites(sites=[site("a", "x")]))).sites
    assert (change.verdict, change.added) == ("created", ["a.x"])
    assert not (tmp_path / "sites.db").exists()


@pytest.mark.parametrize("work", ["apply_sites", "preview_sites"])
async def test_a_preview_refuses_what_an_apply_refuses(control, work):
    await apply(control, site("a"), site("b", inherits="a"))
    operation = getattr(control, work)
    with pytest.raises(api.NotFound, match="there is no site 'z'"):
        await operation(ApplySites(sites=[], delete=["z"]))
    with pytest.raises(UsageError, match="b inherits from it"):
        await operation(ApplySites(sites=[], delete=["a"]))
    with pytest.raises(UsageError, match="'a' is also in sites"):
        await operation(ApplySites(sites=[site("a")], delete=["a"]))
    with pytest.raises(UserError, match="was changed since it was read"):
        await operation(ApplySites(sites=[], delete=["b"], etags={"b": "0" * 16}))


async def test_news_of_a_directory_are_counted_by_day(control, tmp_path):
    """The last day of the list is today; older runs than fourteen days do not count."""
    await apply(control, site("a", "x"))
    now = control._backend.clock.now()
    with open_store(tmp_path / "sites.db") as store:
        for days, news in ((0, 5), (1, 3), (2, 0), (20, 9)):
            run = DirectoryRun("a.x", now - days * 86_400, 0.0, 1, 0, 0)
            progress = DirectoryProgress(UrlState("sites", b"k" * 16), 0.0, 0.0)
            store.begin(run, progress)
            store.end(run._replace(ended_at=now, ended_by=RunEnd.DONE, new_pages=news), progress)
    (row,) = (await control.list_directories(requests.Empty())).directories
    assert row.days == [*[0] * 12, 3, 5]
    assert row.news_at == row.last_run
