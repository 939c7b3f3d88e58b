"""Those who are limited to a tenant see its jobs, rows and rules, and nothing of another, whatever they ask for."""

from __future__ import annotations

import asyncio
import contextlib
import inspect

import msgspec
import pytest
from nephila.kernel.runtime.errors import UserError
from nephila.native import parse_url
from nephila.programs.control_port import Parts
from nephila_control import job_types, requests, rule_types, screen_types, system_types
from nephila_control.access.caller import Caller
from nephila_control.access.guard import guarded
from nephila_control.access.roles import Role
from nephila_control.access.tenant_view import TenantBackend
from nephila_control.api import OPERATIONS, NotFound
from nephila_control.backend import Backend
from nephila_control.local.backend import LocalBackend
from nephila_control.local.rule_store import RuleStore
from nephila_control.operations import Operations
from nephila_control.site_types import ApplyDirectory, ApplySites, DeleteDirectory, DeleteSite, SiteName

from tests.control.documents import document, rule
from tests.scheduler.world import World, site
from tests.storage.storage_rig import record, running

WORDS = {"own": "rivers", "zebra": "quagga"}
"""Host → word of its titles and texts."""
ANNA = Caller("anna", Role.ADMIN, frozenset({"acme"}))
OTHERS = ("quagga", "zebra", "bjob", "bravo")
"""Words of the other tenant: in titles, texts and rules; in URLs; its job; itself. No question has the first."""


@pytest.fixture
async def control(tmp_path):
    """One program with two tenants; each has a job with rows, items and a rule."""
    async with running(tmp_path) as storage:
        for job, host in (("ajob", "own"), ("bjob", "zebra"), ("free", "zebra")):
            for number in range(3):
                url = f"http://{host}.test/{number}"
                values = {
                    "url_key": parse_url(url).fingerprint,
                    "title": WORDS[host],
                    "text": f"a page, {WORDS[host]}".encode(),
                }
                storage.send(record(number, url=url, job=job, **values))
        await storage.storage.flush()
    world = await World(tmp_path / "frontier", site({"/0": []})).start()
    backend = LocalBackend(
        Parts(world.bus, world.clock, world.scheduler), tmp_path, ("sqlite",), rules=RuleStore(tmp_path, world.bus)
    )
    control = Operations(backend)

    async def turn():
        while True:
            world.clock.run_due()
            await asyncio.sleep(0)

    turning = asyncio.ensure_future(turn())
    rules = [rule("acme.shop", css="h1"), rule("bravo.shop", css="quagga"), rule("shop", css="quagga")]
    await control.apply_rules(rule_types.ApplyRules(rules=rules))
    for job, tenant, host in (("ajob", "acme", "own"), ("bjob", "bravo", "zebra"), ("free", "", "zebra")):
        spec = {"seeds": [f"http://{host}.test/0"], "paused": True, **({"tenant": tenant} if tenant else {})}
        await control.apply_job(job_types.ApplyJob(job=document(job, **spec)))
    yield control
    turning.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await turning


def asked(kind, values):
    """A request of a type with those of these values that it has a field for."""
    fields = {field.name for field in msgspec.structs.fields(kind)}
    return msgspec.convert({name: value for name, value in values.items() if name in fields}, kind)


def site_document(name, *directories, **spec):
    """A Site; each directory is named after its host."""
    if directories:
        spec["directories"] = [{"name": one, "url": f"http://{one}.test/"} for one in directories]
    return {"apiVersion": "nephila.dev/v1", "kind": "Site", "metadata": {"name": name}, "spec": spec}


QUESTIONS = (
    {},
    {"url": "http://zebra.test/1"},
    {"search": "zebra"},
    {"query": "zebra"},
    {"query": "page"},
    {"url": "http://zebra.test/1", "job": "bjob"},
    {"job": "bjob", "name": "bjob", "query": "page", "host": "zebra.test", "pattern": "/", "urls": ["http://x.test/"]},
    {"job": "free", "name": "free", "query": "page", "rule": "shop"},
    {"name": "bravo.shop", "rule": "bravo.shop"},
    {"name": "ajob", "job": "ajob", "query": "page"},
    {"job": document("bjob", tenant="acme"), "draft": {"url": "http://zebra.test/1"}},
    {"job": document("new", tenant="acme", rules=["bravo.shop"]), "rules": [rule("bravo.shop")]},
    {"settings": {"speed": 1}, "all": True, "ids": ["0:0"]},
)


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
async def test_no_answer_has_anything_of_another_tenant(control, question):
    """Over every operation that the question fits."""
    own, before = guarded(control, ANNA), await state(control)
    given = msgspec.json.encode(question).decode()
    tried = 0
    for route in OPERATIONS.values():
        try:
            request = asked(route.request, question)
        except msgspec.ValidationError:
            continue
        tried += 1
        try:
            answer = msgspec.json.encode(await getattr(own, route.name)(request)).decode()
        except UserError as error:
            answer = str(error)
        for word in OTHERS:
            assert word not in answer or word in given, f"{route.name}: {answer[:300]}"
    assert tried
    assert await state(control) == before


async def state(control):
    """What the other tenant has."""
    jobs = [(await control.get_job(job_types.JobName(name=name))).document for name in ("bjob", "free")]
    return jobs, [one.document for one in (await control.list_rules(requests.Empty())).rules if one.name != "acme.shop"]


async def test_what_is_the_tenants_own_is_shown(control):
    """Of every kind."""
    own = guarded(control, ANNA)
    assert [job.name for job in (await own.list_jobs(job_types.ListJobs())).jobs] == ["ajob"]
    assert [one.name for one in (await own.list_rules(requests.Empty())).rules] == ["acme.shop"]
    assert len((await own.list_pages(screen_types.ListPages())).pages) == 3
    assert (await own.search_pages(screen_types.SearchPages(query="page"))).total == 3
    assert sum(one.fetches for one in (await own.count_outcomes(screen_types.OfJob())).counts) == 3
    assert (await own.get_page(screen_types.GetPage(url="http://own.test/1"))).page.job == "ajob"
    assert (await own.explain(job_types.ExplainUrl(url="http://own.test/1"))).explanation.job == "ajob"
    assert (await own.status(requests.Empty())).jobs == 1
    assert (await own.pause_job(job_types.JobName(name="ajob"))).verdict == "unchanged"


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (document("mine"), "spec.tenant has to be acme"),
        (document("mine", tenant="bravo"), "spec.tenant has to be acme"),
        (document("bjob", tenant="acme"), "is taken"),
        (document("mine", tenant="acme", rules=["shop"]), "there is no rule"),
    ],
)
async def test_a_job_of_another_tenant_is_not_made(control, job, says):
    """Nor taken over."""
    with pytest.raises(UserError, match=says):
        await guarded(control, ANNA).apply_job(job_types.ApplyJob(job=job))


async def test_a_name_with_rows_of_an_earlier_job_is_not_given_away(control):
    """The rows stay when a job is deleted; a job of its name would show them."""
    await control.delete_job(job_types.JobName(name="bjob"))
    own = guarded(control, ANNA)
    with pytest.raises(UserError, match=r"is taken|rows of an earlier job"):
        await own.apply_job(job_types.ApplyJob(job=document("bjob", tenant="acme", paused=True)))
    assert (await own.list_pages(screen_types.ListPages(job="bjob"))).pages == []


async def test_a_tenant_makes_jobs_and_rules_of_its_own(control):
    """And they are in the log, with its name."""
    own = guarded(control, ANNA)
    await own.apply_rules(rule_types.ApplyRules(rules=[rule("acme.more")]))
    with pytest.raises(UserError, match=r"named acme\.NAME"):
        await own.apply_rules(rule_types.ApplyRules(rules=[rule("more")]))
    job = document("mine", tenant="acme", rules=["acme.more"], paused=True)
    assert (await own.apply_job(job_types.ApplyJob(job=job))).verdict == "created"
    log = (await control.list_control_log(system_types.ListControlLog())).entries
    assert [(one.who, one.subject) for one in log] == [("anna", "job mine"), ("anna", "rules acme.more")]


async def make_sites(control):
    """A site of each tenant, one of nobody, and the settings that all inherit."""
    sites = [
        site_document("default", frequency="6h"),
        site_document("press", "zebra", cookies=True),
        site_document("bsite", "bravo", tenant="bravo"),
        site_document("asite", "own", tenant="acme"),
    ]
    await control.apply_sites(ApplySites(sites=sites))


async def test_a_tenant_sees_and_edits_its_own_sites_only(control):
    """Directories before their first run, too."""
    await make_sites(control)
    own = guarded(control, ANNA)
    assert [one.name for one in (await own.list_sites(requests.Empty())).sites] == ["asite"]
    assert [one.name for one in (await own.list_directories(requests.Empty())).directories] == ["asite.own"]
    await own.apply_directory(ApplyDirectory(site="asite", directory={"name": "x", "url": "http://own.test/x/"}))
    await own.apply_sites(ApplySites(sites=[site_document("anew", "more", tenant="acme", inherits="asite")]))
    assert (await own.delete_directory(DeleteDirectory(site="asite", name="x"))).removed == ["asite.x"]
    assert (await own.apply_sites(ApplySites(sites=[], prune=True))).sites
    assert [one.name for one in (await control.list_sites(requests.Empty())).sites] == ["bsite", "default", "press"]


@pytest.mark.parametrize(
    ("site", "says"),
    [
        (site_document("bsite", "x", tenant="acme"), "is taken"),
        (site_document("press", "x", tenant="acme"), "is taken"),
        (site_document("default", tenant="acme"), "is taken"),
        (site_document("mine", "x"), "has to be acme"),
        (site_document("mine", "x", tenant="bravo"), "has to be acme"),
        (site_document("mine", "x", tenant="acme", inherits="press"), "there is no site 'press'"),
        (site_document("mine", "x", tenant="acme", rules=["bravo.shop"]), "there is no rule"),
        (site_document("mine", "bravo", tenant="acme"), "another site has the URL prefix"),
        (
            {
                **site_document("mine", tenant="acme"),
                "spec": {
                    "tenant": "acme",
                    "directories": [{"name": "x", "url": "http://mine.test/", "tenant": "bravo"}],
                },
            },
            "has to be acme",
        ),
    ],
)
async def test_a_site_of_another_tenant_is_not_made_nor_read(control, site, says):
    """No line has a word of the other tenant that the request does not have."""
    await make_sites(control)
    before = (await control.list_sites(requests.Empty())).sites
    own = guarded(control, ANNA)
    with pytest.raises(UserError, match=says) as caught:
        await own.apply_sites(ApplySites(sites=[site]))
    assert not [one for one in ("bsite", "zebra") if one in str(caught.value) and one not in str(site)]
    for work in (
        own.get_site(SiteName(name="bsite")),
        own.delete_site(DeleteSite(name="press")),
        own.delete_directory(DeleteDirectory(site="bsite", name="bravo")),
    ):
        with pytest.raises(NotFound):
            await work
    assert (await control.list_sites(requests.Empty())).sites == before


async def test_a_tenant_does_not_change_the_settings_of_a_foreign_site(control):
    """That inherits from its own."""
    await make_sites(control)
    await control.apply_sites(ApplySites(sites=[site_document("heir", "heir", tenant="bravo", inherits="asite")]))
    with pytest.raises(UserError, match="inherits from this one"):
        await guarded(control, ANNA).apply_sites(
            ApplySites(sites=[site_document("asite", "own", tenant="acme", score=9)])
        )


def test_each_member_of_the_port_is_decided():
    """A default of the port would show what the whole system shows."""
    port = {name: one for name, one in vars(Backend).items() if not name.startswith("_")}
    wanted = {name for name, one in port.items() if callable(one) or isinstance(one, property)}
    assert wanted <= set(vars(TenantBackend))
    assert not inspect.isabstract(TenantBackend)
