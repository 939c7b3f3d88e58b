"""Every screen over a stored crawl, and over rows that a stranger wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import html as parser
from nephila_console.application import SCREENS
from nephila_console.messages import table
from nephila_console.screens.studio_state import state_of
from nephila_control import system_types
from nephila_control.job_types import ApplyJob, JobName
from nephila_control.local.backend import NoDeadLetters
from nephila_rules.studio.draft import Draft, DraftField, Pick, Source

from tests.console import shop
from tests.console.console_rig import console
from tests.control.documents import document

JOB_URL = "http%3A%2F%2Fa.test%2F7"
STUDIO = state_of(
    Draft(
        f"{shop.HOST}/p/1",
        name="tables",
        pattern="/p/",
        fields=(DraftField("title", Source("css", "h1"), picks=(Pick(f"{shop.HOST}/p/1", 7),)),),
        active=0,
    )
)
PATHS = (
    *(
        "/",
        "/jobs",
        "/bulk",
        "/bulk?do=weight&job=news",
        "/jobs?state=paused",
        "/jobs?sort=-failed",
        "/jobs?q=zz",
        "/jobs/new",
        "/jobs/new?form=yaml",
        "/jobs/news",
    ),
    *(
        "/jobs/news/edit",
        "/jobs/news/exclude",
        "/jobs/news/exclude?re=test%0A/7$",
        "/jobs/news/exclude?re=nothing",
        "/jobs/news/delete",
        "/pages",
        "/pages?outcome=failed&reason=http_404",
        "/pages?q=zz",
        "/pages?q=title",
        "/pages?q=zz&in=url",
    ),
    *(
        f"/page?url={JOB_URL}&tab={tab}"
        for tab in ("text", "screenshot", "markdown", "source", "links", "items", "history", "metadata")
    ),
    *("/studio", "/studio?q=zz", f"/studio/{STUDIO}", f"/studio/{STUDIO}/save", f"/studio/{STUDIO}?links=1"),
    *("/audit", "/audit/first", "/audit/first?number=1"),
    *(
        "/hosts",
        "/hosts?job=news",
        "/hosts/a.test",
        "/items",
        "/items?q=zz",
        "/items?field=price&test=above&value=2&sort=-price",
        "/sites",
        "/sites?edit=1",
        "/sites/table",
        "/rules",
        "/rules?name=shop",
        "/system",
        "/log",
        "/system/settings?section=downloader&changed=1",
        "/system/network",
        "/system/webhooks",
        "/log?who=token&search=zz",
    ),
)
STUDIO_FILES = {f"/studio/{{name}}/{name}" for name in ("frame", "rule.yaml", "rule.zip")}
HOSTILE = (
    "<script>canary()</script>",
    '"><img src=x onerror=canary()>',
    "'-canary()-'",
    "</title></textarea></pre></style><svg onload=canary()>",
    "{{ 7*7 }}{% for x in y %}",
    "javascript:canary()",
    "<a href='javascript:canary()'>",
    "&lt;script&gt;canary()&lt;/script&gt;",
    "\u202egnp.exe\u2066 \x1b[31m \x00",
    "%(evil)s %s",
    "x" * 300_000,
)
SOURCES = Path(__file__).parents[2] / "services" / "nephila_console"


def test_every_screen_that_can_be_loaded_is_among_these():
    """A new screen is tested from its first day."""
    loaded = {re.sub(r"\?.*", "", path).replace("news", "{name}").replace(STUDIO, "{name}").replace("first", "{name}")
              .replace("a.test", "{name}") for path in PATHS}  # fmt: skip
    shown = {path for method, path, _ in SCREENS if method == "GET"}
    assert shown - loaded == {
        "/search",
        "/items.csv",
        "/sites.csv",
        "/items.jsonl",
        "/items.parquet",
        "/page/screenshot",
        "/items/picture",
        *STUDIO_FILES,
    }


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_every_screen_renders(tmp_path, lang):
    """Its headline, no script inside, nothing of another host."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        for path in PATHS:
            answer = await browser.get(f"/console{path}", {"accept-language": lang})
            assert answer.status_code == 200, (path, answer.text[-2000:])
            page = parser.fromstring(answer.text)
            assert page.get("lang") == lang
            assert len(page.xpath("//h1")) == 1, path
            check_markup(page)
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def check_markup(page):
    """No inline script or style, no handler, no request to another host without a click."""
    assert page.xpath("//script[not(@src)] | //style | //object | //embed") == []
    for frame in page.xpath("//iframe"):
        assert frame.get("sandbox") in ("allow-top-navigation-by-user-activation", "allow-scripts")
        assert re.match("/console/studio/[^/]+/frame", frame.get("src"))
    for one in page.iter():
        assert not [name for name in one.attrib if name.startswith("on") or name == "style"], one.tag
        assert not str(one.get("href", "")).lower().strip().startswith(("javascript:", "data:"))
    for source in page.xpath("//@src | //link/@href | //form/@action"):
        assert source.startswith("/console/"), source


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_text_from_the_web_stays_a_text(tmp_path, text):
    """In titles, texts, links, items and metadata, on every screen: the tree has no more elements than with a plain
    text."""
    async with console(tmp_path, text, f"http://a.test/7?{'q' * 50}='\"><script>canary()</script>") as rig:
        browser = await rig.opened()
        for path in PATHS:
            answer = await browser.get(f"/console{path}")
            assert answer.status_code == 200, path
            page = parser.fromstring(answer.text)
            check_markup(page)
            assert page.xpath("//img[not(@src='/console/static/icon.svg')]") == []
            assert not re.search("[\u202e\u2066\x1b\x00]", answer.text)
            assert len(answer.content) < 600_000


async def test_another_language_keeps_the_screen(tmp_path):
    """And is kept in a cookie."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        page = parser.fromstring((await browser.get(f"/console/page?url={JOB_URL}&tab=links")).text)
        (link,) = page.xpath("//a[@lang='zh']/@href")
        chosen = await browser.get(link)
        assert chosen.status_code == 200
        assert "<h1>" in chosen.text
        assert parser.fromstring((await browser.get("/console/jobs")).text).get("lang") == "zh"


async def test_a_page_tells_what_happened_to_it_in_order(tmp_path):
    """Scope, discovery, fetch."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        page = parser.fromstring((await browser.get(f"/console/page?url={JOB_URL}&job=news")).text)
        steps = [" ".join(one.text_content().split()) for one in page.xpath("//ol[@class='steps']/li")]
        assert steps[0].startswith("In scope")
        assert "stored" in steps[-1]


async def test_the_search_leads_to_a_page_a_job_a_rule_or_the_rows(tmp_path):
    """By what it is."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        for text, place in (
            ("http://a.test/7", "/console/page?url=http%3A%2F%2Fa.test%2F7"),
            ("news", "/console/jobs/news"),
            ("shop", "/console/rules?name=shop"),
            ("river", "/console/pages?q=river"),
        ):
            await browser.get(f"/console/search?q={text}")
            assert browser.shown == place


async def test_items_are_exported_without_formulas(tmp_path):
    """As CSV for a spreadsheet, and as JSON lines with the text as it is."""
    async with console(tmp_path, "=HYPERLINK(1)") as rig:
        browser = await rig.opened()
        answer = await browser.get("/console/items.csv")
        assert answer.headers["content-disposition"] == 'attachment; filename="items.csv"'
        assert answer.text.splitlines()[0] == "job,url,url_key,rule,rule_version,ordinal,name,price"
        assert "'=HYPERLINK" in answer.text
        assert '"name":"=HYPERLINK(1)"' in (await browser.get("/console/items.jsonl")).text.replace(": ", ":")


async def test_the_headline_of_an_audit_is_its_interval(tmp_path):
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        page = parser.fromstring((await browser.get("/console/audit/first")).text)
        assert page.xpath("string(//h1)") == "Is this right?"
        form = page.xpath("//form[.//input[@value='right']]")[0]
        fields = {field.get("name"): field.get("value") for field in form.xpath(".//input[not(@name='csrf')]")}
        judged = parser.fromstring((await browser.post("/console/audit/first", fields)).text)
        assert re.fullmatch(r"[\d.]+ % to [\d.]+ % are right", judged.xpath("string(//h1)"))
        assert re.search(r"by 1 of \d+ labels; the estimate is 100 %", judged.xpath("string(//p[@class='lead'])"))


# ---- changes


async def test_a_job_is_created_with_three_fields(tmp_path):
    """The name is made of the host; a mistake is shown at its field and changes nothing."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        await browser.get("/console/jobs/new")
        wrong = await browser.post("/console/jobs", {"url": "ftp://shop.test", "pages": "many", "name": ""})
        assert wrong.status_code == 400
        assert 'value="many"' in wrong.text
        assert 'id="problem-pages"' in wrong.text
        made = await browser.post("/console/jobs", {"url": "shop.test", "pages": "10", "name": ""})
        assert made.status_code == 200
        assert browser.shown.startswith("/console/jobs/shop-test?notice=created")
        found = await rig.control.get_job(JobName(name="shop-test"))
        assert found.document["spec"]["scope"]["maxPages"] == 10
        again = await browser.post("/console/jobs", {"url": "shop.test", "pages": "", "name": ""})
        assert again.status_code == 400
        assert "there is a job shop-test already" in again.text


async def test_a_document_with_mistakes_shows_field_and_line(tmp_path):
    """The text stays in the form, and the job as it was."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        shown = await browser.get("/console/jobs/news/edit")
        generation = re.search(r'name="generation" value="(\d+)"', shown.text)[1]
        text = parser.fromstring(shown.text).xpath("//textarea[@name='text']")[0].text_content()
        wrong = text.replace("spec:\n", "spec:\n  maxpages: 5\n")
        answer = await browser.post("/console/jobs/news/edit", {"text": wrong, "generation": generation})
        line = wrong.splitlines().index("  maxpages: 5") + 1
        assert answer.status_code == 400
        assert f'data-line="{line}"' in answer.text
        assert "maxpages: 5" in answer.text
        right = text.replace("spec:\n", "spec:\n  language: de\n")
        await browser.post("/console/jobs/news/edit", {"text": right, "generation": generation})
        assert browser.shown.endswith("notice=changed")
        late = await browser.post("/console/jobs/news/edit", {"text": text, "generation": generation})
        assert late.status_code == 400
        assert "changed by someone else" in late.text
        found = await rig.control.get_job(JobName(name="news"))
        assert found.document["spec"]["language"] == "de"


async def test_a_job_is_resumed_paused_and_cancelled(tmp_path):
    """Each by one form; cancelling asks first."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        await browser.get("/console/jobs/news")
        assert "The job continues." in (await browser.post("/console/jobs/news/resume", {})).text
        assert "The job is paused" in (await browser.post("/console/jobs/news/pause", {})).text
        await browser.get("/console/jobs/news/delete")
        await browser.post("/console/jobs/news/delete", {})
        assert browser.shown == "/console/jobs?notice=deleted"
        assert (await browser.get("/console/jobs/news")).status_code == 404


async def test_jobs_are_filtered_by_their_owner(tmp_path):
    """The list names the owners; a name that is none shows nothing."""
    async with console(tmp_path) as rig:
        await rig.control.apply_job(ApplyJob(job=document("weather", paused=True, owner="anna@example.org")))
        browser = await rig.opened()
        everything = await browser.get("/console/jobs")
        assert 'href="/console/jobs?owner=anna%40example.org"' in everything.text
        assert "/console/jobs/news" in everything.text
        hers = await browser.get("/console/jobs?owner=anna%40example.org")
        assert "/console/jobs/weather" in hers.text
        assert "/console/jobs/news" not in hers.text
        assert "No job is like that." in (await browser.get("/console/jobs?owner=nobody")).text


# ---- words


def test_every_text_of_the_console_is_in_the_table_of_messages():
    """In Chinese; what is missing would be shown in English."""
    call = re.compile(r"""_\(\s*("(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*)""")
    found = set()
    for path in (*SOURCES.rglob("*.py"), *SOURCES.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        single = re.findall(r"""_\(\s*'((?:[^'\\]|\\.)*)'""", text)
        found |= {"".join(re.findall(r'"((?:[^"\\]|\\.)*)"', one)).replace('\\"', '"') for one in call.findall(text)}
        found |= set(single)
        for one, many in re.findall(r'ngettext\("([^"]*)", "([^"]*)"', text):
            found |= {one, many}
    assert found
    missing = sorted(found - set(table("zh")))
    assert missing == []
    for text, translated in table("zh").items():
        assert sorted(re.findall(r"%\(\w+\)s", text)) == sorted(re.findall(r"%\(\w+\)s", translated)), text


async def test_pages_are_found_by_their_words(tmp_path):
    """The passage has its hits marked and is text; a search that cannot be read is told beside its box."""
    async with console(tmp_path, "A <b>fox</b> & more") as rig:
        browser = await rig.opened()
        answer = await browser.get("/console/pages?q=fox")
        page = parser.fromstring(answer.text)
        assert page.xpath("//ol[@class='hits']//mark/text()") == ["fox", "fox"]
        assert page.xpath("string(//ol[@class='hits']//p)") == "A <b>fox</b> & more"
        wrong = await browser.get("/console/pages?q=lang:de+fox")
        assert wrong.status_code == 400
        assert "is no field of a search" in parser.fromstring(wrong.text).xpath("string(//p[@role='alert'])")
        assert parser.fromstring(wrong.text).xpath("//input[@name='q' and @aria-invalid]/@value")[0] == "lang:de fox"


async def test_a_dead_letter_is_replayed_by_its_button(tmp_path):
    """One, or all; a refusal is shown as its reason."""
    calls = []

    class Letters(NoDeadLetters):
        async def page(self, request):
            letter = system_types.DeadLetter(
                id="3:120", at=1.0, service="parser", topic="pages", message="Page", job="news", url="http://a.test/x",
                url_key="", partition=3, attempts=3, error="<b>no</b>", bytes=7, refused="",
            )  # fmt: skip
            return system_types.DeadLetterList(dead_letters=[letter])

        async def replay(self, request):
            calls.append((request.ids, request.all))
            refused = "" if request.ids else "its body is gone"
            one = system_types.Replayed(id="3:120", replayed=not refused, refused=refused)
            return system_types.ReplayedList(dead_letters=[one])

    async with console(tmp_path) as rig:
        rig.control._backend.letters = Letters()
        browser = await rig.opened()
        assert "&lt;b&gt;no&lt;/b&gt;" in (await browser.get("/console/system")).text
        assert "published again" in (await browser.post("/console/system/replay", {"id": "3:120"})).text
        answer = await browser.post("/console/system/replay", {})
        assert (answer.status_code, "its body is gone" in answer.text) == (409, True)
        assert calls == [(["3:120"], False), ([], True)]
