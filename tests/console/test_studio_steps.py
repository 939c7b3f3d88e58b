"""Steps of a browser in the studio: recorded by clicks and a form, taken by Chromium, saved in the rule."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from nephila.kernel.documents.browser_schema import Step
from nephila.kernel.runtime.errors import UserError
from nephila_console.screens.studio_state import draft_of, state_of
from nephila_rules.studio.draft import MAX_STEPS, Draft

from tests.console import shop
from tests.console.asked_site import asked_site
from tests.console.console_rig import Browser, console
from tests.console.test_studio_screens import PAGE, frame_of

LIST = """<!doctype html><h1>Tables</h1><ul id=list><li class=card>Table 0</ul>
<button class=load-more onclick="more()">Load more</button><p class=hidden hidden>Hidden</p><script>
let next = 1;
async function more() {
  const text = await (await fetch('/data/' + next)).text();
  next += 1;
  const card = document.createElement('li');
  card.className = 'card';
  card.textContent = text;
  document.getElementById('list').append(card);
}
</script>"""


def ajax_site():
    """A site whose list grows by a button, and the paths that were asked for."""
    return asked_site(lambda path: f"Table {path.rpartition('/')[2]}" if path.startswith("/data/") else LIST)


def rendering(chromium: str) -> dict[str, Any]:
    """Settings of a downloader with a browser."""
    return {"browser__enabled": True, "browser__executable": chromium, "browser__sandbox": False}


def shown(browser: Browser) -> Draft:
    """The draft in the address of the browser."""
    return draft_of(re.split("[/~?]", browser.shown.partition("/studio/")[2])[0])


def number_of(frame: str, text: str) -> int:
    """The number of the element with this text."""
    return int(frame.partition(f'" target="_top">{text}</a>')[0].rpartition("pick/")[2])


async def add(browser: Browser, **step: str) -> str:
    """Send the form of a step; returns the page."""
    query = "&".join(f"{key}={value}" for key, value in step.items())
    return (await browser.get(f"/console/studio/{state_of(shown(browser))}?{query}")).text


@pytest.mark.full
async def test_recorded_steps_are_taken_and_saved(tmp_path, chromium):
    """Two clicks on the page's own button: two more cards, each a request through the gateway; the rule has the steps.
    A field keeps its element although its number is another one."""
    async with console(tmp_path, allow_private=True, **rendering(chromium)) as rig, ajax_site() as (base, asked):
        browser = await rig.opened()
        await browser.get("/console/studio")
        answer = await browser.post("/console/studio", {"url": f"{base}/list", "rendered": "1"})
        assert "Steps of the browser" in answer.text
        frame = await frame_of(browser, rig, shown(browser))
        assert "Table 1" not in frame
        place = f"/console/studio/{state_of(shown(browser))}"
        await browser.get(f"{place}?pick={number_of(frame, 'Load more')}")
        before = shown(browser)
        await browser.get(f"/console/studio/{state_of(before)}?mode=step_click")
        await browser.get(f"/console/studio/{state_of(shown(browser))}?pick={number_of(frame, 'Load more')}")
        assert [one.click for one in shown(browser).steps] == [".load-more"]
        assert "not taken yet" in await add(browser, add="click", what=".load-more")
        await add(browser, add="wait", what="li:nth-of-type(3)")
        answer = await browser.post(f"/console/studio/{state_of(shown(browser))}", {})
        assert answer.status_code == 200, answer.text
        draft = shown(browser)
        assert "not taken yet" not in answer.text
        frame = await frame_of(browser, rig, draft)
        assert "Table 1" in frame
        assert "Table 2" in frame
        assert draft.fields[0].picks[0].node == number_of(frame, "Load more")
        assert draft.fields[0].picks[0].node != before.fields[0].picks[0].node
        assert [one for one in asked if one.startswith("/data")] == ["/data/1", "/data/2"]
        assert asked.count("/robots.txt") >= 1
        rule = await browser.get(f"/console/studio/{state_of(draft)}/rule.yaml")
        assert 'steps: [{click: ".load-more"}, {click: ".load-more"}, {wait: "li:nth-of-type(3)"}]' in rule.text
        saved = await browser.get(f"/console/studio/{state_of(draft)}/save")
        assert "render: always, or auto" in saved.text
        # One step less: the page is the one that was rendered with none, until it is rendered again.
        await browser.get(f"/console/studio/{state_of(draft)}?drop=0")
        assert "Table 1" not in await frame_of(browser, rig, shown(browser))


@pytest.mark.full
@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (".nothing", "step 1: click &#39;.nothing&#39;: no element matches in 5s"),
        (".hidden", "1 match, the first is hidden"),
    ],
)
async def test_a_step_without_its_element_says_so(tmp_path, chromium, selector, words):
    """The page as it was stays, with the steps."""
    async with console(tmp_path, allow_private=True, **rendering(chromium)) as rig, ajax_site() as (base, _):
        browser = await rig.opened()
        await browser.get("/console/studio")
        await browser.post("/console/studio", {"url": f"{base}/list", "rendered": "1"})
        await add(browser, add="click", what=selector)
        draft = shown(browser)
        answer = await browser.post(f"/console/studio/{state_of(draft)}", {})
        assert answer.status_code == 409
        assert words in answer.text
        # Links of the answer are relative: the form has the address of the draft.
        assert browser.shown == f"/console/studio/{state_of(draft)}"
        assert "Table 0" in await frame_of(browser, rig, draft)


@pytest.mark.full
async def test_a_rendering_with_steps_passes_the_egress_guard(tmp_path, chromium):
    """A private address is not asked."""
    async with console(tmp_path, **rendering(chromium)) as rig, ajax_site() as (base, asked):
        browser = await rig.opened()
        await browser.get("/console/studio")
        draft = Draft(f"{base}/list", rendered=True, steps=(Step(click=".load-more"),))
        answer = await browser.post(f"/console/studio/{state_of(draft)}", {})
        assert "denied(address)" in answer.text
        assert asked == []


async def test_steps_are_added_removed_and_checked_without_a_browser(tmp_path):
    """A mistake keeps the draft; a page can only be rendered by POST."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        draft = Draft(PAGE, name="tables", pattern="/p/", steps=(Step(click=".more"), Step(scroll=3)))
        await browser.get(f"/console/studio/{state_of(draft)}")
        assert "scroll to the end, 3 times at most" in await add(browser, add="pause", what="2s", optional="1")
        assert shown(browser).steps[2] == Step(pause="2s", optional=True)
        for step, words in (
            ({"add": "click", "what": "]["}, "no CSS selector"),
            ({"add": "pause", "what": "2h"}, "longer than 60s"),
            ({"add": "scroll", "what": "many"}, "how many times"),
            ({"add": "scroll", "what": "9999"}, "100"),
            ({"add": "type", "what": "input"}, "a step here is one of"),
            ({"add": "click", "what": ""}, "click"),
        ):
            text = await add(browser, **step)
            assert 'role="alert"' in text
            assert words in text, step
        await browser.get(f"/console/studio/{state_of(shown(browser))}")
        await browser.get(f"/console/studio/{state_of(draft)}?drop=0")
        assert shown(browser).steps == (Step(scroll=3),)
        place = f"/console/studio/{state_of(draft)}"
        answer = await browser.post(place, {})
        assert answer.status_code == 409
        assert "no page can be rendered here" in answer.text
        full = Draft(PAGE, steps=(Step(scroll=1),) * MAX_STEPS)
        await browser.get(f"/console/studio/{state_of(full)}")
        assert f"at most {MAX_STEPS} steps" in await add(browser, add="scroll", what="1")


async def test_a_rendered_page_that_is_not_in_memory_can_be_rendered_again(tmp_path):
    """The link of another person, or of another run of the server: the fields are not lost."""
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        draft = Draft(PAGE, name="tables", rendered=True, steps=(Step(click=".more"),))
        answer = await browser.get(f"/console/studio/{state_of(draft)}")
        assert answer.status_code == 404
        assert "render it again" in answer.text
        assert f"{state_of(draft)}" in answer.text


async def test_two_renderings_are_the_most_at_once(tmp_path, monkeypatch):
    """A further one is refused in one line."""
    async with console(tmp_path) as rig:
        browsers = [await rig.opened() for _ in range(3)]
        release = asyncio.Event()

        async def fetch(url: str, browser: object = None) -> Any:
            await release.wait()
            raise UserError("released")

        monkeypatch.setattr(rig.control._backend, "fetch", fetch)
        draft = Draft(f"{shop.HOST}/p/1", rendered=True)
        for one in browsers:
            await one.get("/console/studio")
        work = [asyncio.ensure_future(one.post(f"/console/studio/{state_of(draft)}", {})) for one in browsers]
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        assert "2 pages are being rendered" in done.pop().result().text
        release.set()
        answers = await asyncio.gather(*work)
        assert sum("released" in one.text for one in answers) == 2
