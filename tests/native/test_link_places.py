"""Where a link stands: in the main text by its line, in navigation by the elements around it, over all occurrences."""

from __future__ import annotations

import random
import re
from types import ModuleType
from typing import Any

import pytest
from nephila.kernel.pages.link_position import IN_MAIN, IN_NAV
from nephila.native import PassOptions

from .conftest import check_page, core_only, links_of
from .test_main_text import PROSE, page

URL = "http://a.test/dir/page.html"


def places(found: Any) -> dict[str, int]:
    """Bits of place by the last part of the URL."""
    check_page(found)
    urls = (link.url.rpartition("/")[2] for link in links_of(found))
    return {url: flag & (IN_MAIN | IN_NAV) for url, flag in zip(urls, found.link_flags, strict=True)}


def article(*more: str, before: str = "") -> bytes:
    """A page with a menu, six paragraphs and a footer."""
    prose = [f"<p>{PROSE[n % 3]}{PROSE[(n + 1) % 3]} So much for part {n}.</p>" for n in range(12)]
    return page(
        f"{before}<main><article><h1>The spider's web</h1><div class=entry-content>"
        f"{''.join([*prose[:6], *more, *prose[6:]])}</div></article></main>"
    )


def inside(link: str) -> str:
    """A paragraph with a link in it."""
    return f"<p>{PROSE[0]}{link}{PROSE[1]}</p>"


def test_text_and_menu(core: ModuleType) -> None:
    """A link of a sentence is the text's, those of nav and footer are the menu's, what is beside both is neither."""
    found = places(core.page_pass(article(inside("<a href=web>orb</a>")), URL, "utf-8"))
    assert found["web"] == IN_MAIN
    assert found["m3"] == found["privacy"] == IN_NAV
    assert found["r2"] == 0


def test_occurrences_fold(core: ModuleType) -> None:
    """A link of the menu that the text has, too, is the text's, however either is written."""
    for again in ("/m3", "http://a.test/m3", "//a.test:80/m3?utm_source=x"):
        found = places(core.page_pass(article(inside(f"<a href='{again}'>Section</a>")), URL, "utf-8"))
        assert found["m3"] == IN_MAIN, again
        assert found["m4"] == IN_NAV


def test_chrome_inside_the_text_is_both(core: ModuleType) -> None:
    """An aside or a header within the article may be main text and is chrome all the same."""
    body = article(f"<aside><p>{PROSE[0]}<a href=note>note</a>{PROSE[1]}{PROSE[2]}</p></aside>")
    found = core.page_pass(body, URL, "utf-8")
    in_text = b"note" in found.main_text
    assert places(found)["note"] == IN_NAV | IN_MAIN * in_text


def test_a_picture_goes_with_what_follows_it(core: ModuleType) -> None:
    """An anchor without a text has no line of its own."""
    found = places(core.page_pass(article("<a href=big><img src=x></a>"), URL, "utf-8"))
    assert found["big"] == IN_MAIN
    last = core.page_pass(b"<p>text<p><a href=x><img src=y></a>", URL, "utf-8")
    assert places(last) == {"x": 0}


def test_nobody_asks(core: ModuleType) -> None:
    """Without main text no link has a place, and the rest of its flags is as ever."""
    body = article(inside("<a rel=nofollow href=web>orb</a>"))
    asked = core.page_pass(body, URL, "utf-8").link_flags
    assert core.page_pass(body, URL, "utf-8", PassOptions(main_text=False)).link_flags == bytes(
        flag & 15 for flag in asked
    )


def test_refresh_and_frames(core: ModuleType) -> None:
    """What stands in no body has no place."""
    refresh = core.page_pass(b"<meta http-equiv=refresh content='0;url=1'><p>text", URL, "utf-8")
    frames = core.page_pass(b"<nav><a href=2></a></nav><frameset><frame src=1></frameset>", URL, "utf-8")
    assert (places(refresh), places(frames)) == ({"1": 0}, {"1": 0})


@core_only
def test_many_occurrences(core: ModuleType) -> None:
    """Of one link there may be a million; the first 4 x max_links of all are looked at."""
    again = "<nav>" + "<a href=x>x</a>" * 5000 + "</nav>"
    late = article(inside("<a href=web>orb</a>"), before=again)
    assert places(core.page_pass(late, URL, "utf-8"))["web"] == IN_MAIN
    assert places(core.page_pass(late, URL, "utf-8", PassOptions(max_links=100)))["web"] == 0


@pytest.mark.parametrize("seed", range(40))
def test_places_are_those_of_the_lines(core: ModuleType, seed: int) -> None:
    """Of invented pages: a link is in the main text exactly if one of its anchors begins in a line of it, and in
    chrome if each of its anchors does."""
    rng = random.Random(seed)
    parts, around = [], {}
    for number in range(rng.randrange(5, 60)):
        chrome = rng.choice(["", "", "", "nav", "header", "footer", "aside"])
        name = f"k{number}k"
        around[name] = bool(chrome)
        text = PROSE[rng.randrange(3)] if rng.random() < 0.6 else ""
        tag = rng.choice(["p", "li", "h2", "td", "div", "pre", "span"])
        part = f"<{tag}>{text}<a href={name}>{name}</a>{text if rng.random() < 0.5 else ''}</{tag}>"
        parts.append(f"<{chrome}>{part}</{chrome}>" if chrome else part)
    body = article(*parts) if rng.random() < 0.5 else page("".join(parts))
    found = core.page_pass(body, URL, "utf-8")
    main = set(re.findall(r"k\d+k", found.main_text.decode()))
    got = places(found)
    assert {name for name in around if got[name] & IN_MAIN} == main & around.keys()
    assert {name for name in around if got[name] & IN_NAV} == {name for name, chrome in around.items() if chrome}
