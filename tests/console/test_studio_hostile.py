"""Hostile markup in the frame of the studio: nothing of it is written, runs, or asks another host."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from lxml import html as parser
from nephila_console.screens.studio import FRAME_POLICY, STYLE, STYLED_POLICY
from nephila_console.screens.studio_state import state_of
from nephila_control.http.server import tcp_server
from nephila_rules.runtime.document import Document
from nephila_rules.studio.draft import Draft
from nephila_rules.studio.frame import markup
from nephila_rules.studio.numbering import numbers

from tests.acceptance import locate
from tests.console import shop
from tests.console.console_rig import console

CANARY = "http://127.0.0.1:{port}/canary"
VECTORS = (
    "<script>{run}</script>",
    "<script src={url}></script>",
    "<img src={url} onerror={run}>",
    "<svg onload={run}><script>{run}</script><image href={url} /><use href={url}#a /></svg>",
    "<svg><style><img src=x onerror={run}></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src={url} onerror={run}&gt;'>",
    "<form><math><mtext></form><form><mglyph><svg><mtext><style><path id='</style><img onerror={run} src={url}>'>",
    "<template><script>{run}</script><img src={url}></template>",
    "<style>@import '{url}'; body{{background:url({url})}} @font-face{{font-family:a;src:url({url})}}</style>",
    "<p style='background:url({url})'>x</p></style><script>{run}</script>",
    "<base href={url}><a href=x>relative</a>",
    "<meta http-equiv=refresh content='0; url={url}'>",
    "<iframe srcdoc='<script>{run}</script>' src={url}></iframe>",
    "<object data={url}></object><embed src={url}><applet code={url}></applet>",
    "<form action={url}><input name=a autofocus onfocus={run}><button formaction={url}>go</button></form>",
    "<video src={url} poster={url} autoplay onerror={run}><source src={url}></video><audio src={url} autoplay></audio>",
    "<link rel=stylesheet href={url}><link rel=prefetch href={url}><link rel=dns-prefetch href=//foreign.test>",
    "<a href='javascript:{run}'>link</a><a href={url} ping={url} target=_top>out</a>",
    "<noscript><p title='</noscript><img src={url} onerror={run}>'></noscript>",
    "<textarea></textarea><script>{run}</script><title></title><img src={url} onerror={run}>",
    "<xmp><script>{run}</script></xmp><plaintext><img src={url} onerror={run}>",
    "<a href=pick/1 target=_top class=m id=n1>ours?</a><p id=main class='m m0' onclick={run}>x</p>",
    "<details open ontoggle={run}><summary>s</summary></details><dialog open>d</dialog>",
    "<input type=image src={url} onerror={run}><isindex action={url}><body onload={run} background={url}>",
    "&lt;script&gt;{run}&lt;/script&gt;<!--><script>{run}</script>--><![CDATA[<script>{run}</script>]]>",
    "<img srcset='{url} 1x' src=x><picture><source srcset={url}><img></picture><table background={url}><td colspan=9>x",
    "</body></html><script>{run}</script>\x00<scr\x00ipt>{run}</scr\x00ipt>",
)
RUN = "parent.postMessage(1),top.document.title='canary',document.title='canary'"
ALLOWED = {"href", "target", "class", "id", "colspan", "rowspan", "title"}


def frame_of(text: str) -> str:
    """The markup of a page."""
    document = Document(f"<html><body>{text}</body></html>".encode(), "http://shop.test/")
    return markup(document, numbers(document), {}).html


def check(found: str) -> None:
    """Only our links, classes, numbers and sizes are in it, as a browser's parser has it too."""
    for tree in (parser.fromstring(f"<div>{found}</div>"), Document(f"<div>{found}</div>".encode()).tree):
        elements = tree.iter() if hasattr(tree, "iter") else tree.body.traverse()
        for one in elements:
            if not isinstance(one.tag, str) or one.tag.startswith("-"):
                continue
            attributes = dict(one.attrib if hasattr(one, "attrib") else one.attributes)
            assert one.tag not in ("script", "style", "svg", "math", "img", "iframe", "object", "form", "input", "base")
            assert attributes.keys() <= ALLOWED, (one.tag, attributes)
            assert one.tag == "a" or "href" not in attributes
            if "href" in attributes:
                assert re.fullmatch(r"pick/\d+", attributes["href"])


@pytest.mark.parametrize("vector", VECTORS)
def test_nothing_of_a_vector_is_written(vector):
    """But its texts."""
    check(frame_of(vector.format(run=RUN, url="http://foreign.test/x")))


def test_nothing_of_the_vectors_of_a_library_is_written():
    """223 payloads of DOMPurify's tests."""
    (file, *_) = sorted(locate("xss-dompurify").glob("*.json"))
    payloads = [one["payload"] for one in json.loads(file.read_text()) if isinstance(one.get("payload"), str)]
    assert len(payloads) > 100
    for payload in payloads:
        check(frame_of(payload))


def test_a_deep_and_a_long_page_are_bounded():
    """Neither recursion nor size."""
    assert len(frame_of("<div>" * 50_000 + "x")) < 10_000
    document = Document(("<p>some text" * 200_000).encode(), "http://shop.test/")
    found = markup(document, numbers(document), {})
    assert not found.whole
    assert len(found.html) < 1_600_000


def test_the_policy_of_the_frame_allows_its_style_alone():
    """By its hash; `unsafe-inline` is nowhere."""
    assert "default-src 'none'" in FRAME_POLICY
    assert "sandbox allow-top-navigation-by-user-activation" in FRAME_POLICY
    assert "unsafe" not in FRAME_POLICY
    assert "script" not in FRAME_POLICY
    assert "url(" not in STYLE
    assert "@import" not in STYLE


async def test_a_click_without_the_mark_of_the_frame_leads_nowhere(tmp_path):
    """So no other site can open the studio with a draft of its own; with the mark no session is needed."""
    async with console(tmp_path) as rig:
        state, stranger = state_of(Draft(f"{shop.HOST}/p/1")), rig.browser()
        for mark in ("", "~", f"~{'0' * 32}", "~\u00e9"):
            assert (await stranger.get(f"/console/studio/{state}{mark}/pick/3")).status_code == 404
        marked = f"{state}~{rig.access.seal.mark(state)}"
        answer = await stranger.get(f"/console/studio/{marked}/pick/3")
        assert answer.headers["refresh"] == f"0; url=/console/studio/{state}?pick=3"
        assert "csrf" not in answer.text
        assert (await stranger.get(f"/console/studio/{marked}/frame")).text.count("Table 1") == 0  # the login page
        browser = await rig.opened()
        assert (await browser.get(f"/console/studio/{state}/frame")).status_code == 404
        for query, policy in (("?plain=1", FRAME_POLICY), ("", STYLED_POLICY)):
            answer = await browser.get(f"/console/studio/{marked}/frame{query}")
            assert answer.headers["content-security-policy"] == policy


@pytest.mark.full
@pytest.mark.usefixtures("chromium")
async def test_a_browser_runs_no_script_of_a_page_and_asks_no_other_host(tmp_path, chromium):
    """All vectors on one page and each on one of its own; a server counts requests."""
    from tests.console.test_console_in_chromium import chromium_page

    hits: list[bytes] = []

    async def canary(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hits.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(canary, "127.0.0.1", 0)
    url = CANARY.format(port=server.sockets[0].getsockname()[1])
    texts = [vector.format(run=RUN, url=url) for vector in VECTORS]
    found = {f"http://shop.test/x/{number}": text for number, text in enumerate([*texts, "".join(texts)])}
    async with console(tmp_path) as rig:
        shop.write(tmp_path, found)
        served = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await served.open()
        base = f"http://127.0.0.1:{served.port}/console/"
        async with chromium_page(chromium) as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            for address in found:
                await page.goto(f"{base}studio/{state_of(Draft(address, plain=True))}")
                frame = page.frame_locator("iframe.page")
                await frame.locator("body").wait_for(state="attached")
                assert "canary" not in await page.title()
                assert "canary" not in await frame.locator("title").inner_text()
                assert await frame.locator("script, img, svg, form, iframe, object, input, link, base").count() == 0
            assert page.foreign == []
            assert [one for one in page.complaints if "frame-ancestors" not in one] == []
        await served.close()
    server.close()
    assert hits == []
