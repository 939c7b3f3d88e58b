"""The studio's screens without a browser: pages from the web, the links of the frame, saving, mistakes."""

from __future__ import annotations

import io
import zipfile

import pytest
from lxml import html as parser
from nephila_console.screens.studio_state import draft_of, state_of
from nephila_control.requests import Empty
from nephila_rules.studio.draft import Draft, DraftField, Pick, Source

from tests.console import shop
from tests.console.asked_site import asked_site
from tests.console.console_rig import Browser, ConsoleRig, console

PAGE = f"{shop.HOST}/p/1"
DRAFT = Draft(
    PAGE,
    name="tables",
    pattern="/p/",
    fields=(DraftField("title", Source("css", "h1"), required=True, picks=(Pick(PAGE, 7),)),),
    active=0,
)


def site(robots: str):
    """A site whose pages change by a script, and the paths that were asked for."""
    script = "<script>document.querySelector('h1').textContent = 'Rendered'</script>"
    return asked_site(lambda _: f"<h1>Fresh</h1>{script}", robots)


async def frame_of(browser: Browser, rig: ConsoleRig, draft: Draft, query: str = "?plain=1") -> str:
    """The markup of its page, by default the plain one."""
    state = state_of(draft)
    answer = await browser.get(f"/console/studio/{state}~{rig.access.seal.mark(state)}/frame{query}")
    assert answer.status_code == 200
    return answer.text


async def test_a_page_is_fetched_from_the_web_through_robots_txt(tmp_path):
    """Once; it is kept in memory, so the frame asks for nothing."""
    async with console(tmp_path, allow_private=True) as rig, site("User-agent: *\nDisallow: /private") as (base, asked):
        browser = await rig.opened()
        await browser.get("/console/studio")
        answer = await browser.post("/console/studio", {"url": f"{base}/private/x"})
        assert answer.status_code == 400
        assert "denied(robots)" in answer.text
        await browser.post("/console/studio", {"url": f"{base}/p/1"})
        draft = draft_of(browser.shown.rpartition("/")[2])
        assert draft.url == f"{base}/p/1"
        assert ">Fresh</a>" in await frame_of(browser, rig, draft)
        assert [one for one in asked if one != "/robots.txt"] == ["/p/1"]


@pytest.mark.full
async def test_a_page_is_fetched_as_a_browser_has_it(tmp_path, chromium):
    """With robots.txt as well; its script has run there and is not in the frame."""
    fetching = {"browser__enabled": True, "browser__executable": chromium, "browser__sandbox": False}
    async with console(tmp_path, allow_private=True, **fetching) as rig, site("") as (base, asked):
        browser = await rig.opened()
        await browser.get("/console/studio")
        answer = await browser.post("/console/studio", {"url": f"{base}/p/1", "rendered": "1"})
        assert answer.status_code == 200, answer.text
        found = await frame_of(browser, rig, draft_of(browser.shown.rpartition("/")[2]))
        assert ">Rendered</a>" in found
        assert "script" not in found
        assert asked[0] == "/robots.txt"


async def test_without_a_browser_a_page_is_not_rendered(tmp_path):
    """And not fetched either."""
    async with console(tmp_path, allow_private=True) as rig, site("") as (base, asked):
        browser = await rig.opened()
        await browser.get("/console/studio")
        answer = await browser.post("/console/studio", {"url": f"{base}/p/1", "rendered": "1"})
        assert (answer.status_code, asked) == (400, [])
        assert "no page can be rendered here" in answer.text


async def test_the_egress_guard_counts_for_the_studio(tmp_path):
    """A private address is not asked."""
    async with console(tmp_path) as rig, site("") as (base, asked):
        browser = await rig.opened()
        await browser.get("/console/studio")
        answer = await browser.post("/console/studio", {"url": f"{base}/p/1"})
        assert answer.status_code == 400
        assert "denied(address)" in answer.text
        assert asked == []


async def test_links_say_whether_the_job_follows_them_and_why(tmp_path):
    """By the words of explain."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        draft = Draft(PAGE, job="news", fields=DRAFT.fields)
        plain = parser.fromstring(await frame_of(browser, rig, draft))
        assert plain.xpath("//span[@title]") == []
        noted = parser.fromstring(await frame_of(browser, rig, draft, "?links=1&plain=1"))
        links = noted.xpath("//span[@title]")
        assert [one.text_content() for one in links] == ["Shop", "Next product"]
        assert all("out of scope" in one.get("title") and "no" in one.get("class").split() for one in links)


async def test_a_rule_is_shown_downloaded_applied_and_compared(tmp_path):
    """With its tests; the second time with the difference to the version in effect."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        place = f"/console/studio/{state_of(DRAFT)}"
        page = await browser.get(f"{place}/save")
        assert "This rule is new." in page.text
        text = (await browser.get(f"{place}/rule.yaml")).text
        assert "title: {css: h1, required: true}" in text
        packed = zipfile.ZipFile(io.BytesIO((await browser.get(f"{place}/rule.zip")).content))
        assert packed.read("tables/rule.yaml").decode() == text
        assert len(packed.namelist()) == 7
        await browser.get(f"{place}/save")
        await browser.post(f"{place}/save", {})
        assert browser.shown == "/console/rules?name=tables&notice=changed"
        assert "tables" in [one.name for one in (await rig.control.list_rules(Empty())).rules]
        assert "in effect already" in (await browser.get(f"{place}/save")).text
        other = DRAFT.with_field(0, DraftField("title", Source("css", "title")))
        difference = (await browser.get(f"/console/studio/{state_of(other)}/save")).text
        assert "replaces the version in effect" in difference
        assert "-  fields: {title: {css: h1, required: true}}" in difference


async def test_a_mistake_keeps_the_draft_and_says_what_is_wrong(tmp_path):
    """A name, a pattern, a page that is not stored, an element that is not there, a damaged address."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        place = f"/console/studio/{state_of(DRAFT)}"
        for query, words in (
            ("name=9%20x&type=text", "cannot be used"),
            ("pick=9999999", "no element 9999999"),
            ("mode=fly", "cannot be used"),
        ):
            answer = await browser.get(f"{place}?{query}")
            assert (answer.status_code, words in answer.text) == (409, True), query
            assert 'value="title"' in answer.text
        answer = await browser.get(f"{place}?pattern=%28")
        assert answer.status_code == 200
        assert "problem" in answer.text
        assert (await browser.get(f"{place}?page=http://shop.test/gone")).status_code == 404
        assert (await browser.get("/console/studio/AAAA")).status_code == 400
        answer = await browser.get("/console/studio?url=http://shop.test/gone")
        assert (answer.status_code, "problem" in answer.text) == (200, True)


async def test_a_click_that_no_selector_explains_keeps_the_field(tmp_path):
    """It says so; the person goes back or removes it."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        field = DraftField("x", picks=(Pick(PAGE, 7), Pick(PAGE, 8, "src")), many=False)
        answer = await browser.get(f"/console/studio/{state_of(Draft(PAGE, fields=(field,), active=0))}?step=learn")
        assert answer.status_code == 200
        assert draft_of(browser.shown.rpartition("/")[2]).fields[0].name == "x"
