"""Sites are edited in a grid or by a table: the differences come first, and no edit is lost."""

from __future__ import annotations

import re

import pytest
from lxml import html as parser
from nephila.kernel.runtime.errors import UsageError
from nephila_console import site_plan
from nephila_console.screens.site_changes import _named
from nephila_control import api, requests, site_types
from nephila_control.access.roles import Role

from tests.console.console_rig import console


def document(name="news", directories=({"name": "world", "url": "http://news.test/world/", "score": 2.0},), **spec):
    parts = [dict(part) for part in directories]
    whole = {**spec, **({"directories": parts} if parts else {})}
    return {"apiVersion": "nephila.dev/v1", "kind": "Site", "metadata": {"name": name}, "spec": whole}


def site(**values):
    return site_types.Site(name=values.get("name", "news"), etag="0" * 16, document=document(**values))


ASIA = {"name": "asia", "url": "http://news.test/asia/"}


async def applied(rig, *documents):
    await rig.control.apply_sites(site_types.ApplySites(sites=list(documents)))


async def stored(rig):
    """Documents of all sites by name."""
    listed = await rig.control.list_sites(requests.Empty())
    return {row.name: row.document["spec"] for row in listed.sites}


def plan_of(answer):
    return re.search('name="plan" value="([^"]+)"', answer.text)[1]


def text_of(answer, expression):
    return [" ".join(" ".join(part.itertext()).split()) for part in parser.fromstring(answer.text).xpath(expression)]


# ---- plans


def test_only_cells_that_differ_make_a_change():
    sites = [site(), site(name="other", directories=[ASIA])]
    cells = {"score@news.world": "2", "frequency@news.world": "", "url@other.asia": "http://news.test/asia/"}
    assert site_plan.from_cells(sites, cells) == site_plan.Plan([], [], {})
    plan = site_plan.from_cells(sites, {**cells, "score@news.world": " 3 ", "paused@news.world": "true"})
    (changed,) = plan.documents
    assert changed["spec"]["directories"][0] == {
        "name": "world",
        "url": "http://news.test/world/",
        "score": 3.0,
        "paused": True,
    }
    assert plan.etags == {"news": "0" * 16}


def test_an_emptied_cell_inherits_again():
    plan = site_plan.from_cells([site()], {"score@news.world": ""})
    assert plan.documents[0]["spec"]["directories"] == [{"name": "world", "url": "http://news.test/world/"}]


def test_a_deleted_row_takes_its_directory_and_the_row_of_an_empty_site_the_site():
    sites = [site(), site(name="empty", directories=())]
    plan = site_plan.from_cells(sites, {"delete@news.world": "1", "delete@empty": "1"})
    assert plan.documents == [document(directories=())]
    assert plan.deleted == ["empty"]
    assert plan.etags == {"news": "0" * 16, "empty": "0" * 16}


def test_a_new_row_makes_a_directory_and_where_there_is_none_the_site():
    row = {"site@+": "fresh", "name@+": "x", "url@+": "http://fresh.test/x/", "frequency@+": "6h"}
    plan = site_plan.from_cells([site()], row)
    part = {"name": "x", "url": "http://fresh.test/x/", "frequency": "6h"}
    assert plan.documents == [document("fresh", [part])]
    assert plan.etags == {"fresh": ""}
    plan = site_plan.from_cells([site()], {**row, "site@+": "news", "score@news.world": "4"})
    assert [part["name"] for part in plan.documents[0]["spec"]["directories"]] == ["world", "x"]
    assert plan.documents[0]["spec"]["directories"][0]["score"] == 4.0
    with pytest.raises(UsageError, match="needs a site, a name and a URL"):
        site_plan.from_cells([site()], {"name@+": "x"})
    with pytest.raises(UsageError, match="has a directory world already"):
        site_plan.from_cells([site()], {**row, "site@+": "news", "name@+": "world"})


def test_differences_name_each_setting_before_and_after():
    sites = [site(frequency="6h"), site(name="gone")]
    after = document(directories=[{"name": "world", "url": "http://news.test/world/", "scope": {"maxDepth": 2}}, ASIA])
    rows = site_plan.differences(sites, site_plan.Plan([after], ["gone"], {}), {"news.asia": 4})
    assert [(row.verdict, row.name, row.line) for row in rows] == [
        ("changed", "news", 0),
        ("changed", "news.world", 0),
        ("created", "news.asia", 4),
        ("deleted", "gone", 0),
        ("deleted", "gone.world", 0),
    ]
    assert rows[0].fields == [("frequency", "6h", "")]
    assert rows[1].fields == [("score", "2", ""), ("scope.maxDepth", "", "2")]


def test_a_plan_survives_its_field_and_a_damaged_one_is_a_line():
    plan = site_plan.Plan([document()], ["gone"], {"news": "0" * 16})
    assert site_plan.unpacked(site_plan.packed(plan)) == plan
    for text in ("", "x", site_plan.packed(plan)[:-8], "ä"):
        with pytest.raises(UsageError, match="preview it again"):
            site_plan.unpacked(text)


def test_a_plan_of_too_many_sites_is_a_line():
    plan = site_plan.Plan([document()] * 1001, [], {})
    with pytest.raises(UsageError, match="in parts"):
        _ = plan.request


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("sites[0].spec.directories[0].score: spec.directories[0].score: is no", "news.world: score: is no"),
        ("sites[0]: spec.directories[0].score: is no number", "news.world: score: is no number"),
        ("sites[0]: spec.inherits: there is no site", "news: inherits: there is no site"),
        ("sites[7]: spec.url: x", "sites[7]: spec.url: x"),
        ("site 'news' was changed", "site 'news' was changed"),
    ],
)
def test_a_mistake_names_the_row_and_not_the_place_in_the_request(text, line):
    assert _named(text, site_plan.Plan([document()], [], {})) == line


# ---- the grid


async def test_cells_are_previewed_and_then_applied_as_a_whole(tmp_path):
    async with console(tmp_path) as rig:
        await applied(rig, document(frequency="6h", directories=[{**ASIA, "score": 1.0}]))
        browser = await rig.opened()
        page = parser.fromstring((await browser.get("/console/sites?edit=1")).text)
        assert page.xpath("//input[@name='url@news.asia']/@value") == ["http://news.test/asia/"]
        assert page.xpath("//input[@name='frequency@news.asia']/@placeholder") == ["6h"]
        fields = {field.get("name"): field.get("value", "") for field in page.xpath("//form[@data-grid]//input[@name]")}
        fields.pop("delete@news.asia")
        fields |= {"score@news.asia": "7", "site@+": "news", "name@+": "sport", "url@+": "http://news.test/sport/"}
        preview = await browser.post("/console/sites?edit=1", fields)
        assert text_of(preview, "//tbody/tr") == [
            "news.asia changed score 1 → 7",
            "news.sport created url http://news.test/sport/",
        ]
        assert (await stored(rig))["news"]["directories"] == [{**ASIA, "score": 1.0}]
        await browser.post("/console/sites/apply", {"plan": plan_of(preview)})
        assert browser.shown == "/console/sites?notice=changed"
        assert [part["name"] for part in (await stored(rig))["news"]["directories"]] == ["asia", "sport"]


async def test_a_refused_cell_stays_as_it_was_typed(tmp_path):
    async with console(tmp_path) as rig:
        await applied(rig, document())
        browser = await rig.opened()
        await browser.get("/console/sites?edit=1")
        cells = {"frequency@news.world": "daily", "score@news.world": "x<b>"}
        refused = await browser.post("/console/sites?edit=1", cells)
        assert refused.status_code == 400
        assert text_of(refused, "//*[@role='alert']//li")[0].startswith("news.world: ")
        page = parser.fromstring(refused.text)
        assert page.xpath("//input[@name='frequency@news.world']/@value") == ["daily"]
        assert page.xpath("//input[@name='score@news.world']/@value") == ["x<b>"]
        assert "edited" in page.xpath("//input[@name='score@news.world']/@class")[0]


async def test_a_site_that_somebody_else_changed_is_refused_and_the_entry_stays(tmp_path):
    """Before the preview and after it."""
    async with console(tmp_path) as rig:
        await applied(rig, document())
        browser = await rig.opened()
        page = parser.fromstring((await browser.get("/console/sites?edit=1")).text)
        (etag,) = page.xpath("//input[@name='etag@news']/@value")
        cells = {"etag@news": etag, "score@news.world": "7"}
        plan = plan_of(await browser.post("/console/sites?edit=1", cells))
        await applied(rig, document(directories=[ASIA, *document()["spec"]["directories"]]))
        late = await browser.post("/console/sites?edit=1", cells)
        assert (late.status_code, "was changed since it was read" in late.text) == (400, True)
        assert parser.fromstring(late.text).xpath("//input[@name='score@news.world']/@value") == ["7"]
        answer = await browser.post("/console/sites/apply", {"plan": plan})
        assert (answer.status_code, "was changed since it was read" in answer.text) == (409, True)
        assert (await stored(rig))["news"]["directories"][1]["score"] == 2.0


async def test_a_viewer_sees_no_action_and_changes_nothing(tmp_path):
    async with console(tmp_path) as rig:
        await applied(rig, document())
        browser = rig.of_role(Role.VIEWER)
        shown = await browser.get("/console/sites?edit=1")
        assert shown.status_code == 200
        page = parser.fromstring(shown.text)
        assert page.xpath("//main//form[@method='post']") == []
        assert page.xpath("//main//*[contains(@class, 'actions')]//a/text()") == ["Export CSV"]
        assert (await browser.get("/console/sites/table")).status_code == 403
        assert (await browser.post("/console/sites?edit=1", {"score@news.world": "7"})).status_code == 400
        assert (await stored(rig))["news"] == document()["spec"]


# ---- tables


async def test_a_table_is_previewed_with_its_lines_and_applied(tmp_path):
    async with console(tmp_path) as rig:
        await applied(rig, document(), document("other", [ASIA | {"url": "http://other.test/"}]))
        browser = await rig.opened()
        await browser.get("/console/sites/table")
        exported = (await browser.get("/console/sites.csv")).text
        same = await browser.post("/console/sites/table", {"text": exported})
        assert "Nothing would change" in same.text
        table = "site,directory,url,score\nnews,,,\nnews,world,http://news.test/world/,9\nnews,asia,http://news.test/asia/,\n"
        preview = await browser.post("/console/sites/table", {"text": table, "delete_others": "1"})
        assert text_of(preview, "//tbody/tr") == [
            "news.world 3 changed score 2 → 9",
            "news.asia 4 created url http://news.test/asia/",
            "other – deleted",
            "other.asia – deleted url http://other.test/",
        ]
        assert sorted(await stored(rig)) == ["news", "other"]
        await browser.post("/console/sites/apply", {"plan": plan_of(preview)})
        assert sorted(await stored(rig)) == ["news"]
        assert (await stored(rig))["news"]["directories"][0]["score"] == 9.0


async def test_mistakes_of_a_table_have_their_lines_and_the_text_stays(tmp_path):
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        await browser.get("/console/sites/table")
        table = (
            "site,directory,url,score\nnews,,,\nnews,world,ftp://news.test/,x\nnews,asia,http://news.test/asia/,-1\n"
        )
        answer = await browser.post("/console/sites/table", {"text": table})
        assert answer.status_code == 400
        page = parser.fromstring(answer.text)
        assert set(page.xpath("//*[@role='alert']//a/@data-line")) == {"3", "4"}
        assert page.xpath("//textarea")[0].text_content() == table
        assert await stored(rig) == {}
        wrong = await browser.post("/console/sites/table", {"text": "site,directory,url,speed\n"})
        assert "unknown column" in text_of(wrong, "//*[@role='alert']//li")[0]


async def test_where_there_are_no_sites_the_export_says_so(tmp_path, monkeypatch):
    async def list_sites(self, request):
        raise api.NotFound("this API has no sites")

    monkeypatch.setattr("nephila_control.operations.Operations.list_sites", list_sites)
    async with console(tmp_path) as rig:
        answer = await (await rig.opened()).get("/console/sites.csv")
        assert (answer.status_code, "this API has no sites" in answer.text) == (404, True)
