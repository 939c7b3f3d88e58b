"""axe over every screen: no serious finding, in light and dark, wide and narrow."""

from __future__ import annotations

import pytest
from nephila_control.http.server import tcp_server

from tests.console.console_rig import console
from tests.console.test_console_in_chromium import chromium_page
from tests.console.test_screens import PATHS
from tests.required import required
from tools import axe
from tools.install import Missing

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]
FURTHER = ("/pages?q=lang:de", "/nothing", "/page?url=http%3A%2F%2Fa.test%2Funknown")
RUN = (
    "() => axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations"
    ".filter((one) => ['serious', 'critical'].includes(one.impact))"
    ".map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + ' ' + node.failureSummary)]))"
)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 375)])
async def test_no_screen_has_a_serious_finding(tmp_path, chromium, scheme, width):
    """Contrast, names of fields, order of headings, keyboard."""
    with required(Missing):
        script = axe.find().read_text("utf-8")
    async with console(tmp_path) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console"
        options = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
        async with chromium_page(chromium, **options) as page:
            found = {}
            await page.goto(f"{base}/login")
            paths = ("/login", *PATHS, *FURTHER)
            for path in paths:
                if path != "/login":
                    await page.goto(base + path)
                await page.evaluate(script)
                if serious := await page.evaluate(RUN):
                    found[path] = serious
                if path == "/login":
                    await page.goto(f"{base}/login?token={rig.access.sessions.invite()}")
        await server.close()
        nodes = [f"{name}: {node}" for of_path in found.values() for name, several in of_path for node in several]
        lines = sorted(set(nodes))
        assert not found, "\n".join([*lines, ", ".join(found)])
