"""Lists of a crawl in several steps: stages of links, page numbers, ends of lists, lists that are fetched again."""

from __future__ import annotations

import pytest
from nephila.kernel import messages as m
from nephila_rules.execution.to_messages import links_of
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.extract import extract
from nephila_rules.runtime.load import from_json

PAGE = b"<a class=hit href=/a/1>1</a><i>2026-01-10</i><a class=next href=/s?q=1&p=2>next</a>"


def rule(**spec):
    spec = {
        "match": {"url": ["."]},
        "outlinks": [{"css": "a.hit", "stage": "content"}],
        "pagination": {"css": "a.next"},
        **spec,
    }
    return from_json(
        {"apiVersion": "nephila.dev/v1", "kind": "ParseRule", "metadata": {"name": "r"}, "spec": spec}
    ).rule


def links(rule, url="http://a.test/s?q=1", body=PAGE, *, number=0, fetch_no=1, form=False):
    context = m.Context(stage="navigation", platform="p", page=number, form=form)
    page = m.Page(job="j", url_key=bytes(16), url=url, context=context, fetch_no=fetch_no, fetched_at=1_768_176_000.0)
    found = extract(rule, Document(body, url, "utf-8", "text/html", {}, routes=True))
    return links_of(page, [], found, rule.stop)


def urls(message):
    return message.urls.decode()


def test_stages_and_page_numbers():
    pages, content = links(rule())
    assert (urls(pages), pages.context.stage, pages.context.page) == ("http://a.test/s?q=1&p=2", "navigation", 2)
    assert (urls(content), content.context.stage, content.context.page) == ("http://a.test/a/1", "content", 0)
    assert content.context.platform == "p"


@pytest.mark.parametrize(("number", "goes_on"), [(0, True), (2, True), (3, False), (9, False)])
def test_a_list_ends_at_its_limit(number, goes_on):
    found = links(rule(pagination={"css": "a.next", "limit": 3}), number=number)
    assert len(found) == 1 + goes_on


@pytest.mark.parametrize(
    ("until", "goes_on"),
    [
        ({"date": "2026-01-11"}, False),
        ({"date": "2026-01-10"}, True),
        ({"age": "1d"}, False),
        ({"age": "10d"}, True),
    ],
)
def test_a_list_ends_at_a_date(until, goes_on):
    fields = {"date": {"css": "i", "type": "date"}}
    found = links(rule(fields=fields, pagination={"css": "a.next", "until": {"field": "date", **until}}))
    assert len(found) == 1 + goes_on


def test_a_list_that_is_fetched_again_continues_behind_new_links():
    (content,) = links(rule(), fetch_no=2)
    assert urls(content.next_pages) == "http://a.test/s?q=1&p=2"
    assert (content.next_pages.context.page, content.next_always) == (2, False)
    always = {"css": "a.next", "known": "continue"}
    (content,) = links(rule(pagination=always), fetch_no=2)
    assert content.next_always
    nothing = PAGE.replace(b"class=hit", b"")
    assert links(rule(), body=nothing, fetch_no=2) == []
    (empty,) = links(rule(pagination=always), body=nothing, fetch_no=2)
    assert (empty.fingerprints, urls(empty.next_pages)) == (b"", "http://a.test/s?q=1&p=2")


def test_a_counter_leaves_other_parameters_as_they_are():
    counter = {"param": "p", "max": 3}
    pages, _ = links(rule(pagination=counter), "http://a.test/s?wd=%BA%D3+x&p=2")
    assert urls(pages) == "http://a.test/s?wd=%BA%D3+x&p=3"
    assert len(links(rule(pagination=counter), "http://a.test/s?p=3")) == 1
    assert links(rule(pagination=counter), body=b"<p>no links") == []


def test_the_next_page_of_a_form():
    """The counter is in the form; a link of the page to another address has no form."""
    url = "http://a.test/s#!post:wd=%BA%D3&p=1"
    pages, content = links(rule(pagination={"param": "p"}), url, form=True)
    assert (urls(pages), pages.context.form) == ("http://a.test/s#!post:wd=%BA%D3&p=2", True)
    assert not content.context.form
    other = PAGE.replace(b"/s?q=1&p=2", b"http://b.test/s#!post:delete=1")
    pages, _ = links(rule(), url, other, form=True)
    assert (urls(pages), pages.context.form) == ("http://b.test/s#!post:delete=1", False)


def test_until_names_a_date_field():
    with pytest.raises(Exception, match="until names 'date', which is no field of type date"):
        rule(pagination={"css": "a", "until": {"field": "date", "age": "1d"}})
