"""`nephila rules try` has one time limit: for the fetch, for rules of every kind, and for near matches."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila_rules import try_page
from nephila_rules.run_rule import RuleRunner
from nephila_rules.runtime.load import from_json
from nephila_rules.stored_pages import StoredPage
from nephila_rules.time_limit import TimeLimit

BOUNDED = {"title": "h1"}
DEEP = {"title": {"xpath": "//*[count(.//*) > 5][count(preceding::*) > 5]//*[count(preceding::*) > 9]"}}


def rule(fields):
    """A rule with these fields."""
    return from_json(
        {
            "apiVersion": "nephila.dev/v1",
            "kind": "ParseRule",
            "metadata": {"name": "one"},
            "spec": {"match": {"url": "x"}, "fields": fields},
        }
    )


def page(body):
    """A stored page."""
    return StoredPage("http://x.test/", "text/html", "utf-8", body, "http://x.test/", 0.0)


def test_a_rule_that_does_not_end_in_time_is_one_line():
    """The line names the limit, the step and the option."""
    body = b"<div>" * 200 + b"<p>a</p>" * 200_000
    with RuleRunner(limit=TimeLimit(0.5)) as runner, pytest.raises(UserError) as refused:
        runner.run(rule(DEEP), page(body))
    assert str(refused.value) == "the rule did not end within 0.5 s, the limit of all steps; see --time-limit"


def test_time_that_is_used_up_is_not_given_to_a_rule():
    """Also to one that could run in the process, and to the search for near matches."""
    now = [0.0]
    limit = TimeLimit(3.0, monotonic=lambda: now[0])
    with RuleRunner(limit=limit) as runner:
        found = runner.run(rule(BOUNDED), page(b"<h1>T</h1>"))
        assert [bytes(item) for item in found.items] == [b'{"title":"T"}']
        now[0] = 3.0
        with pytest.raises(UserError, match=r"the rule did not end within 3 s"):
            runner.run(rule(BOUNDED), page(b"<h1>T</h1>"))
        with pytest.raises(UserError, match=r"near matches did not end within 3 s"):
            runner.hints(rule(BOUNDED), page(b"<h1>T</h1>"), ["title"])


def test_a_server_that_drips_is_left_at_the_limit():
    """Each byte comes in time; the page does not."""
    closed = threading.Event()

    class Drip(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            try:
                while not closed.wait(0.05):
                    self.wfile.write(b"x")
            except OSError:
                closed.set()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Drip) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{web.server_port}/"
        with pytest.raises(UserError) as refused:
            try_page.page_of(url, "", allow_private=True, host_map=[], limit=TimeLimit(0.7))
        closed.set()
        web.shutdown()
    assert (
        str(refused.value) == f"the fetch of {url} did not end within 0.7 s, the limit of all steps; see --time-limit"
    )
