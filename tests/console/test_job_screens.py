"""A job in tabs, and its form: fields beside the document, and the difference before anything is saved."""

from __future__ import annotations

import pytest
from lxml import html
from nephila_console.screens.job_fields import difference, fields_of, with_fields
from nephila_console.screens.jobs import TABS
from nephila_control.job_types import ApplyJob, JobName

from tests.console.console_rig import console
from tests.control.documents import document

EDIT = "/console/jobs/news/edit"


@pytest.fixture
async def rig(tmp_path):
    """A console over a paused job."""
    async with console(tmp_path) as rig:
        yield rig


def filled(answer):
    """The form of an answer as a browser would send it."""
    (form,) = html.fromstring(answer.text).xpath("//form[contains(@class,'wide')]")
    return {name: value or "" for name, value in form.fields.items()}


async def spec(rig):
    return (await rig.control.get_job(JobName(name="news"))).document["spec"]


@pytest.mark.parametrize("tab", TABS)
async def test_each_tab_of_a_job_is_a_screen_with_its_own_address(rig, tab):
    screen = html.fromstring((await (await rig.opened()).get(f"/console/jobs/news?tab={tab}")).text)
    assert len(screen.xpath("//nav[@class='tabs']/a")) == len(TABS)
    (current,) = screen.xpath("//nav[@class='tabs']/a[@aria-current='page']/@href")
    assert current.endswith("/jobs/news" if tab == "overview" else f"tab={tab}")


async def test_tabs_show_pages_hosts_errors_and_the_document(rig):
    browser = await rig.opened()
    shown = {tab: (await browser.get(f"/console/jobs/news?tab={tab}")).text for tab in (*TABS, "unknown")}
    assert "http://a.test/7" in shown["pages"]
    assert 'href="/console/hosts/a.test"' in shown["hosts"]
    assert "http_404" in shown["errors"]
    assert "http://a.test/7" not in html.fromstring(shown["errors"]).xpath("string(//table)")
    assert "kind: CrawlJob" in shown["document"]
    assert "kind: CrawlJob" not in shown["overview"]
    assert shown["unknown"].count("aria-current") == shown["overview"].count("aria-current")


async def test_a_field_changes_the_document_and_the_difference_is_shown_first(rig):
    browser = await rig.opened()
    form = filled(await browser.get(EDIT))
    seen = await browser.post(EDIT, {**form, "scope.maxPages": "77", "step": "difference"})
    (lines,) = html.fromstring(seen.text).xpath("//section[@class='change']/pre")
    assert "+    maxPages: 77" in lines.text_content()
    assert (await spec(rig))["scope"]["maxPages"] == 0
    saved = await browser.post(EDIT, filled(seen))
    assert "The change is saved." in saved.text
    assert (await spec(rig))["scope"]["maxPages"] == 77


async def test_a_changed_field_and_a_changed_text_are_saved_together(rig):
    browser = await rig.opened()
    form = filled(await browser.get(EDIT))
    text = form["text"].replace("spec:\n", "spec:\n  weight: 3.0\n")
    await browser.post(EDIT, {**form, "text": text, "politeness.delay": "4s", "owner": "anna@example.org"})
    saved = await spec(rig)
    assert (saved["weight"], saved["politeness"]["delay"], saved["owner"]) == (3.0, "4s", "anna@example.org")


async def test_a_second_editor_is_warned_before_and_at_the_save(rig):
    browser = await rig.opened()
    form = filled(await browser.get(EDIT))
    await rig.control.apply_job(ApplyJob(job=document(paused=True, weight=9)))
    seen = await browser.post(EDIT, {**form, "owner": "anna@example.org", "step": "difference"})
    assert seen.status_code == 400
    assert "changed by someone else meanwhile" in seen.text
    assert "-  weight: 9.0" in html.fromstring(seen.text).xpath("string(//section[@class='change']/pre)")
    refused = await browser.post(EDIT, form)
    assert "changed by someone else while this form was open" in refused.text
    assert (await spec(rig))["weight"] == 9


async def test_a_mistake_is_named_and_keeps_what_was_typed(rig):
    browser = await rig.opened()
    form = filled(await browser.get(EDIT))
    answer = await browser.post(EDIT, {**form, "scope.maxPages": "many", "step": "difference"})
    assert (answer.status_code, "not a number" in answer.text) == (400, True)
    wrong = await browser.post(EDIT, {**form, "politeness.delay": "soon", "step": "difference"})
    assert wrong.status_code == 400
    assert "delay" in html.fromstring(wrong.text).xpath("string(//div[@class='problems'])")
    assert "Save this change" not in wrong.text
    nothing = await browser.post(EDIT, {**form, "step": "difference"})
    assert "the text is the present job" in nothing.text


def test_a_field_that_is_emptied_leaves_the_document():
    text = "spec:\n  owner: anna\n  recrawl: {every: 1d}\n"
    form = {"owner": "", "was.owner": "anna", "recrawl.every": "1d", "was.recrawl.every": "1d"}
    assert with_fields(text, form) == "spec:\n  recrawl:\n    every: 1d\n"
    assert with_fields(text, {}) == text


@pytest.mark.parametrize("text", ["", "a: [", "- 1", "spec: 3", "x: &a [*a]", "&a [*a, *a]", "[" * 5000])
def test_a_text_that_is_no_document_has_no_fields(text):
    assert fields_of(text) == []


def test_a_value_of_another_form_is_an_empty_field():
    text = "spec: {seeds: [{a: 1}, {url: 'http://b.test/'}, 'http://a.test/'], owner: [1]}"
    values = {field.name: field.text for field in fields_of(text)}
    assert (values["seeds"], values["owner"], values["weight"]) == ("http://b.test/\nhttp://a.test/", "", "")


def test_a_difference_has_no_head():
    assert difference("a\nb", "a\nc") == ["@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    assert difference("a", "a") == []


def test_seeds_keep_their_other_keys_when_one_is_added():
    text = "spec:\n  seeds:\n  - url: http://a.test/\n    priority: 3\n"
    form = {"was.seeds": "http://a.test/", "seeds": "http://a.test/\r\nhttp://b.test/"}
    assert with_fields(text, form) == (
        "spec:\n  seeds:\n  - url: http://a.test/\n    priority: 3\n  - url: http://b.test/\n"
    )
