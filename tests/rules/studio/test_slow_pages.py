"""A page that is too much for a child of the studio costs its time once, and other pages do not wait for it."""

from __future__ import annotations

import threading

import msgspec
import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila.parser.sandbox import ChildError
from nephila.parser.sandbox.task import CRASH, MEMORY, TIMEOUT
from nephila_rules.induction.page_texts import MAX_CHARS, PageTexts
from nephila_rules.induction.wanted import folded
from nephila_rules.runtime.document import Document, lexbor_text
from nephila_rules.studio.draft import Draft
from nephila_rules.studio.work import CHILDREN, SLOW_S, WALL_S, Answer, PageBody, StudioProcess, Work


class Sandboxes:
    """Children that end by a limit on nested pages, and wait in held pages until the test goes on."""

    def __init__(self, reason=TIMEOUT):
        self.reason = reason
        self.made = []
        self.calls = []
        self.held = threading.Semaphore(0)
        self.go_on = threading.Event()

    def __call__(self):
        sandbox = Sandbox(self)
        self.made.append(sandbox)
        return sandbox


class Sandbox:
    """One of them."""

    def __init__(self, sandboxes):
        self.sandboxes = sandboxes
        self.closed = False

    def call(self, task, payload, attempts):
        self.sandboxes.calls.append((self, msgspec.msgpack.decode(payload)[2][0][3]))
        if b"held" in payload:
            self.sandboxes.held.release()
            assert self.sandboxes.go_on.wait(60)
        if b"nested" in payload:
            raise ChildError("studio", self.sandboxes.reason, "detail")
        return Answer()

    def close(self):
        self.closed = True


def work(text: bytes, kind="view") -> Work:
    return Work(kind, Draft("http://a.test/"), [PageBody("http://a.test/x", "utf-8", "text/html", text, {})])


def test_a_page_that_has_ended_by_a_limit_is_refused_for_a_while():
    """Any call for it; another page, or a new copy of this one, is worked on."""
    sandboxes, clock = Sandboxes(), ManualClock()
    process = StudioProcess(sandboxes, clock.monotonic)
    for kind in ("frame", "view", "step"):
        with pytest.raises(
            UserError, match=r"^http://a\.test/x cannot be worked on here: its work takes more than 2 s"
        ):
            process.call(work(b"nested", kind))
    assert len(sandboxes.calls) == 1
    process.call(work(b"plain"))
    clock.advance(SLOW_S)
    with pytest.raises(UserError, match="choose another page of the site, or write the selectors"):
        process.call(work(b"nested"))
    assert len(sandboxes.calls) == 3
    assert len(sandboxes.made) == 1


@pytest.mark.parametrize(("reason", "why"), [(MEMORY, "takes more than [0-9]+ MB of memory"), (CRASH, "studio: crash")])
def test_the_line_names_the_limit(reason, why):
    """Also one that has no words of its own."""
    with pytest.raises(UserError, match=why):
        StudioProcess(Sandboxes(reason)).call(work(b"nested"))


def test_a_click_on_another_page_does_not_wait_for_a_slow_one():
    """It has a child of its own. A second click on the slow page waits, and takes no child from others."""
    sandboxes = Sandboxes()
    process = StudioProcess(sandboxes)
    assert WALL_S <= 2
    slow = [threading.Thread(target=process.call, args=(work(b"held"),)) for _ in range(2)]
    for thread in slow:
        thread.start()
    assert sandboxes.held.acquire(timeout=60)
    for _ in range(3):
        process.call(work(b"plain"))
    assert len(sandboxes.made) == CHILDREN
    sandboxes.go_on.set()
    for thread in slow:
        thread.join(60)
    assert [page for _, page in sandboxes.calls] == [b"held", b"plain", b"plain", b"plain", b"held"]
    assert sandboxes.calls[0][0] is sandboxes.calls[-1][0], "the child that has its tree"
    process.close()
    assert all(sandbox.closed for sandbox in sandboxes.made)


def test_the_text_of_nested_elements_is_read_once(monkeypatch):
    """A click in the middle of a page with 3000 levels, which took 19 s of the child."""
    html = "<div>" * 3000 + "<a href=/x>deep text</a>" + "</div>" * 3000
    read = []
    monkeypatch.setattr("nephila_rules.runtime.document.text_of_html", read.append)
    document = Document(html.encode())
    (place, *_) = PageTexts(document).of("deep text")
    assert (place.node.tag, place.depth, place.chars) == ("body", 0, 9)
    assert read == []


PAGES = [
    b"<p>a<br>b<p> c\n d <b>e</b>f<pre>g\nh</pre>",
    b"<div>a<script>x<y</script><style>s</style>b<!--c--><template>t<p>u</template><noscript>n</noscript></div>c",
    b"<table><caption>a<tr><td>1<td>2<tr><td>3</table><ul><li>x<li><ul><li>y</ul>z</ul>",
    b"<svg><title>t</title><text>u</text></svg><textarea>a&lt;b</textarea><select><option>o<option>p</select>",
    b"<div></div><span></span> <i>&nbsp;&amp;</i>",
    b"",
]


@pytest.mark.parametrize("html", PAGES)
def test_the_text_of_each_element_is_that_of_a_rule(html):
    """What a rule would take of it, folded, at its place in document order."""
    document = Document(html)
    texts = PageTexts(document)
    for node in document.tree.css("body, body *"):
        text = folded(lexbor_text(node))
        if node.tag not in ("script", "style", "template", "noscript") and 0 < len(text) <= MAX_CHARS:
            chars = {place.node.mem_id: place.chars for place in texts.of(text) if not place.attribute}
            assert chars[node.mem_id] == len(node.text(deep=True))
