"""The last step of the studio: items of the stored pages, jobs that use the rule, and what cannot work here."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila.native import parse_url
from nephila_console.screens.studio_state import state_of
from nephila_control import job_types, studio_types
from nephila_control.access.read_only import read_only
from nephila_control.api import Forbidden
from nephila_control.requests import Empty
from nephila_rules import apply as rules_apply
from nephila_rules.studio.draft import Draft

from tests.console import shop
from tests.console.console_rig import ConsoleRig, console
from tests.console.test_studio_screens import DRAFT
from tests.storage.storage_rig import record, running

SAVE = f"/console/studio/{state_of(DRAFT)}/save"
EXTRACT = f"/console/studio/{state_of(DRAFT)}/extract"


@asynccontextmanager
async def stored_shop(directory: Path) -> AsyncIterator[ConsoleRig]:
    """A program whose rows hold the pages of the shop."""
    async with running(directory) as storage:
        for number, url in enumerate(shop.pages(), 100):
            storage.send(record(number, url=url, url_key=parse_url(url).fingerprint, job="news", sha256=b"s" * 32))
        await storage.storage.flush()
    async with console(directory) as rig:
        yield rig


def items(directory: Path, rule: str = "tables") -> int:
    with closing(sqlite3.connect(directory / "nephila.db")) as database:
        return int(database.execute("SELECT count(*) FROM items WHERE rule = ?", (rule,)).fetchone()[0])


def of_draft(draft: Draft = DRAFT) -> studio_types.ExtractStored:
    return studio_types.ExtractStored(draft=studio_types.document_of(draft))


async def test_the_stored_pages_become_items_by_one_click(tmp_path):
    async with stored_shop(tmp_path) as rig:
        browser = await rig.opened()
        answer = await browser.get(SAVE)
        assert "Extract from the stored pages" in answer.text
        answer = await browser.post(EXTRACT, {})
        assert answer.status_code == 200
        assert "24 items of 24 stored pages" in answer.text
        assert items(tmp_path) == 24
        assert "Table 1" in (await browser.get("/console/items?rule=tables")).text
        assert (await browser.get("/console/items.csv?rule=tables")).text.count("Table ") >= 24


async def test_extracted_twice_equals_extracted_once(tmp_path):
    async with stored_shop(tmp_path) as rig:
        first = await rig.control.extract_stored(of_draft())
        second = await rig.control.extract_stored(of_draft())
        assert (first.pages, first.items, first.fields[0].gained) == (24, 24, 24)
        assert (second.pages, second.items, second.fields[0].gained, second.fields[0].changed) == (24, 24, 0, 0)
        assert items(tmp_path) == 24


async def test_a_page_that_was_fetched_again_meanwhile_keeps_its_newer_items(tmp_path, monkeypatch):
    put = rules_apply.ItemReplacement
    changed = parse_url(f"{shop.HOST}/p/3").fingerprint.hex()

    def opened(directory, *, write):
        if write:
            with closing(sqlite3.connect(directory / "nephila.db")) as database:
                database.execute("UPDATE pages SET sha256 = 'other' WHERE url_key = ?", (changed,))
                database.commit()
        return put(directory, write=write)

    async with stored_shop(tmp_path) as rig:
        monkeypatch.setattr(rules_apply, "ItemReplacement", opened)
        await rig.control.extract_stored(of_draft())
        assert items(tmp_path) == 23


async def test_one_extraction_runs_at_a_time(tmp_path):
    async with stored_shop(tmp_path) as rig:
        first = asyncio.ensure_future(rig.control.extract_stored(of_draft()))
        await asyncio.sleep(0)
        with pytest.raises(UserError, match="under way"):
            await rig.control.extract_stored(of_draft())
        assert (await first).items == 24


async def test_a_rule_that_matches_no_stored_page_says_so(tmp_path):
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        await browser.get(SAVE)
        answer = await browser.post(EXTRACT, {})
        assert answer.status_code == 409
        assert "no stored page is for the rule" in answer.text


async def test_the_chosen_jobs_use_the_rule(tmp_path):
    async with stored_shop(tmp_path) as rig:
        browser = await rig.opened()
        assert 'name="job:news"' in (await browser.get(SAVE)).text
        await browser.post(SAVE, {"job:news": "1"})
        job = await rig.control.get_job(job_types.JobName(name="news"))
        assert "tables" in job.document["spec"]["rules"]
        assert "uses it" in (await browser.get(SAVE)).text


async def test_a_form_without_the_token_changes_nothing(tmp_path):
    async with stored_shop(tmp_path) as rig:
        browser = await rig.opened()
        await browser.get(SAVE)
        assert (await browser.post(EXTRACT, {"csrf": "other"})).status_code == 403
        assert items(tmp_path) == 0


async def test_a_read_only_server_offers_what_works_and_says_why_the_rest_does_not(tmp_path):
    async with stored_shop(tmp_path) as rig:
        reads = read_only(rig.control, "end it and start again", writes_items=True)
        can = {entry.name: entry for entry in (await reads.get_capabilities(Empty())).capabilities}
        assert can["extract"].works
        assert not can["rules"].works
        assert can["rules"].remedy == "end it and start again"
        assert (await reads.extract_stored(of_draft())).items == 24
        closed = read_only(rig.control, "end it")
        with pytest.raises(Forbidden):
            await closed.extract_stored(of_draft())
        assert not {entry.name: entry for entry in (await closed.get_capabilities(Empty())).capabilities}[
            "extract"
        ].works


async def test_each_capability_that_is_absent_has_a_reason(tmp_path):
    async with console(tmp_path) as rig:
        for entry in (await rig.control.get_capabilities(Empty())).capabilities:
            assert entry.works is not bool(entry.reason), entry
            assert entry.works is not bool(entry.remedy), entry
