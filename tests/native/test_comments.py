"""Comments below an article are kept apart from its text; posts of a thread are the text."""

from __future__ import annotations

from typing import Any

import pytest
from nephila.parser.single.extract import extract

from tests.native.conftest import core_only

PROSE = (
    "The orb-weaver builds its net anew every single evening, because dew and dust take the glue from the threads."
    " It eats the old silk first, and most of what it eats is in the new net within less than half an hour."
)
REMARK = "I have watched one of them on my balcony for the whole summer, and it never once used the same corner twice."


def article(kind: str = "article", head: str = "") -> bytes:
    """An article with two comments, a form and a link below it."""
    text = "".join(f"<p>{PROSE} Number {number} of the nets was measured.</p>" for number in range(4))
    return f"""<html><head><title>Spiders at work</title><meta property=og:type content={kind}>{head}</head><body>
<article><h1>Spiders at work</h1>{text}</article>
<section id=comments class=comments-area><h2>2 comments</h2>
<ol class=comment-list><li class=comment><b>Ann</b><p>{REMARK}</p><a href=/reply>Reply</a></li>
<li class=comment><b>Bob</b><p>So did I: {REMARK}</p><a href=/reply>Reply</a></li></ol>
<form><p>Your address is not published with what you write here, and it is not given to anybody else.</p></form>
</section></body></html>""".encode()


@core_only
def test_comments_below_an_article_are_a_field_of_their_own(core: Any) -> None:
    """Lines of readers, without links and the form."""
    found = core.page_pass(article(), "http://a.test/", "utf-8")
    assert REMARK not in found.main_text.decode()
    assert PROSE in found.main_text.decode()
    lines = found.comments.decode().split("\n")
    assert [line for line in lines if REMARK in line] == [REMARK, f"So did I: {REMARK}"]
    assert "Ann" in lines
    assert not any("Reply" in line or "address" in line for line in lines)
    assert extract(article(), "http://a.test/")["comments"] == found.comments.decode()


@core_only
@pytest.mark.parametrize(
    ("kind", "head"),
    [("website", ""), ("article", '<script type=application/ld+json>{"@type":"DiscussionForumPosting"}</script>')],
)
def test_a_page_that_is_no_article_has_no_comments_apart(core: Any, kind: str, head: str) -> None:
    """A thread, and a page that does not say what it is."""
    assert core.page_pass(article(kind, head), "http://a.test/", "utf-8").comments == b""


def test_without_comments_the_field_is_empty(core: Any) -> None:
    """Of both implementations, and of a document that is no HTML."""
    assert core.page_pass(b"<p>a", "http://a.test/", "utf-8").comments == b""
    assert extract(b"a text", "http://a.test/x.txt", "text/plain")["comments"] == ""
