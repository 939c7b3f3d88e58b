"""A form is sent by POST if the context of the fetch says so, and never because a page names such a URL."""

from __future__ import annotations

import pytest
from nephila.downloader.http.request import http_request_of
from nephila.downloader.http.route import NO_ROUTE
from nephila.downloader.http.target import TargetUrl
from nephila.kernel import messages as m
from nephila.kernel.fragment_routes import parse_routed
from nephila.parser.links.link_list import link_context

URL = "http://a.test/s#!post:wd=%BA%D3&p=1"


@pytest.mark.parametrize(
    ("url", "context", "body"),
    [
        (URL, m.Context(form=True), b"wd=%BA%D3&p=1"),
        (URL, m.Context(stage="navigation"), None),
        (URL, None, None),
        ("http://a.test/s", m.Context(form=True), None),
        ("http://a.test/s#!other", m.Context(form=True), None),
    ],
)
def test_what_is_sent(url, context, body):
    request = m.FetchRequest(url=url, context=context)
    made = http_request_of(request, TargetUrl(url), NO_ROUTE, 0, None)
    assert made.body == body
    assert made.method == ("GET" if body is None else "POST")


def test_links_do_not_inherit_the_form():
    page = m.Page(url=URL, context=m.Context(stage="navigation", platform="p", form=True))
    assert link_context(page) == m.Context(stage="navigation", platform="p")


def test_the_form_is_part_of_the_identity():
    one, other = parse_routed(URL), parse_routed(URL.replace("p=1", "p=2"))
    assert one.href == URL
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint[:4] == other.fingerprint[:4]
