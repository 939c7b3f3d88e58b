"""Steps of a browser in a draft: their selectors, their bounds, and picks in a page rendered again."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.browser_schema import Step
from nephila.kernel.runtime.errors import UsageError
from nephila.parser.page.html_tree import css
from nephila_rules.runtime.document import Document
from nephila_rules.studio.browser_steps import browser_of, moved, selector_of, with_step
from nephila_rules.studio.draft import MAX_STEPS, Draft, DraftField, Pick
from nephila_rules.studio.numbering import numbers

URL = "http://shop.test/list"


def page(body: str) -> Document:
    """A page of the shop."""
    return Document(f"<html><body>{body}</body></html>".encode(), URL)


def number(document: Document, selector: str, nth: int = 0) -> int:
    """Of an element."""
    return numbers(document)[css(document.tree.root, selector)[nth].mem_id]


@pytest.mark.parametrize(
    ("body", "clicked", "selector"),
    [
        ("<button class=load-more><span>More</span></button>", "span", ".load-more"),
        ("<a href=# class='x1Yz9q kQzRt'><i>More</i></a><p>x", "i", "a"),
        ("<div><p>a<p>b</div>", "p:nth-of-type(2)", "p:nth-of-type(2)"),
        ("<div role=button class=opener><b>Open</b></div>", "b", 'div[role="button"]'),
    ],
)
def test_the_selector_gives_the_button_around_a_click_first(body, clicked, selector):
    """By names that people gave before positions."""
    document = page(body)
    found = selector_of(css(document.tree.root, clicked)[0], document)
    assert found.endswith(selector)
    assert css(document.tree.root, found)[0].text().strip() == css(document.tree.root, clicked)[0].text().strip()


def test_picks_follow_their_elements_into_the_page_rendered_anew():
    """By tag, classes, text and place among equals; what is gone is dropped, other pages stay."""
    cards = "<li class=card>Table<b>9</b></li>"
    before, after = page(f"<ul>{cards}{cards}<i>gone</i></ul>"), page(f"<h1>New</h1><ul>{cards}{cards}{cards}</ul>")
    picks = (Pick(URL, number(before, ".card", 1)), Pick("http://shop.test/2", 3), Pick(URL, number(before, "i")))
    draft = Draft(URL, fields=(DraftField("name", picks=picks),))
    found = moved(draft, before, after).fields[0].picks
    assert found == (Pick(URL, number(after, ".card", 1)), Pick("http://shop.test/2", 3))


def test_steps_are_bounded_and_read_as_those_of_a_rule():
    """Those of a state that was not made here too."""
    draft = with_step(Draft(URL), "more", ".next", optional=True)
    assert draft.steps == (Step(more=".next", optional=True),)
    assert browser_of(draft).steps == list(draft.steps)
    with pytest.raises(UsageError, match=f"at most {MAX_STEPS} steps"):
        with_step(Draft(URL, steps=draft.steps * MAX_STEPS), "scroll", 1)
    with pytest.raises(UsageError, match="longer than 60s"):
        browser_of(Draft(URL, steps=(Step(wait="a", timeout="1h"),)))
