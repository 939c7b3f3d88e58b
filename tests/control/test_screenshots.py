"""The screenshot of a rendered page: that of the fetch whose row is shown."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila.native import parse_url
from nephila.storage.read import reader
from nephila_control import api, stored_rows
from nephila_control.screen_types import GetPage, GetScreenshot

from tests.storage.storage_rig import JOB, record, running

URL = "http://a.test/1"
PNG = b"\x89PNG\r\n\x1a\n and more"


@pytest.fixture
async def rows(tmp_path):
    """One stored page."""
    async with running(tmp_path) as rig:
        rig.send(record(1, url=URL, url_key=parse_url(URL).fingerprint))
        await rig.storage.flush()
    return tmp_path


def name_of(rows):
    """The file that the browser of this fetch writes."""
    return f"{reader.row(rows, JOB, parse_url(URL).fingerprint)['fetch_id']}.png"


def test_a_page_with_a_screenshot_says_so_and_gives_it(rows):
    """As it was written."""
    captures = rows / "captures"
    assert not stored_rows.page_detail(rows, GetPage(url=URL), None, captures).screenshot
    with pytest.raises(api.NotFound, match="no screenshot"):
        stored_rows.screenshot(rows, GetScreenshot(url=URL), None, captures)
    captures.mkdir()
    (captures / name_of(rows)).write_bytes(PNG)
    assert stored_rows.page_detail(rows, GetPage(url=URL), None, captures).screenshot
    assert stored_rows.screenshot(rows, GetScreenshot(url=URL), None, captures).body == PNG
    assert not stored_rows.page_detail(rows, GetPage(url=URL), None).screenshot
    with pytest.raises(api.NotFound, match="no screenshot"):  # of a job whose rows may not be read
        stored_rows.screenshot(rows, GetScreenshot(url=URL), ["other"], captures)


def test_a_file_that_is_no_picture_is_not_given(rows):
    """One line."""
    captures = rows / "captures"
    captures.mkdir()
    (captures / name_of(rows)).write_bytes(b"<script>")
    with pytest.raises(UserError, match="is no PNG"):
        stored_rows.screenshot(rows, GetScreenshot(url=URL), None, captures)
