"""The table of reasons: words are stable, every reason is written and explained, and no reason is written by hand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nephila
import pytest
from nephila.kernel.messages import FetchOutcome, Outcome
from nephila.kernel.reasons.row import ListVerdict, Pause, Retry
from nephila.kernel.reasons.status_words import status_of, status_reason, tunnel_reason, tunnel_status_of
from nephila.kernel.reasons.table import UNKNOWN, Reason, kind_of, row_of, row_of_outcome, set_reason, verdict_of, words

PACKAGES = Path(nephila.__file__).parents[1]
OF_VERSION_1 = """
    address bad_redirect bad_url blocked browser browser_budget browser_memory busy connect content_type dead_letter
    disconnected dns encoding excluded expired internal lease_expired login lost memory middleware navigation near_copy
    no_browser no_tunnel not_consumed not_modified not_resolved protocol proxy proxy_auth redirect requisite robots
    second_fetch sitemap_chain sitemap_limit slow stale step throttle timeout tls too_large too_many_redirects trap
"""
MADE = [status_reason(status) for status in (404, 410, 429, 500, 503, 599, 799)] + [tunnel_reason(403)]


def test_a_word_never_changes():
    """Databases and logs hold it."""
    assert set(OF_VERSION_1.split()) <= set(Reason)
    assert all(one.value == one.name.lower() for one in Reason if one)


@pytest.mark.parametrize("reason", Reason, ids=lambda one: one.name)
def test_each_reason_is_explained(reason):
    """No page that was left out on purpose counts as a failure."""
    row = reason.row
    assert row.words
    assert (row.kind == "failed") is (row.ends in (Outcome.FAILED, None))
    assert row.ends is not None or not row.given_back
    if row.ends is not None:
        ended = row.ends.name.lower()
        assert (words(ended, reason), kind_of(ended, reason), verdict_of(ended, reason)) == (
            row.words,
            row.kind,
            row.verdict,
        )


@pytest.mark.parametrize("reason", [one for one in Reason if one.row.reported_as], ids=str)
def test_a_finer_reason_ends_as_its_coarser_one(reason):
    """Rows and metrics have the coarser word; only what the scheduler does differs."""
    coarse = Reason(reason.row.reported_as)
    assert not coarse.row.reported_as
    assert (coarse.row.ends, coarse.row.kind, coarse.row.verdict) == (
        reason.row.ends,
        reason.row.kind,
        reason.row.verdict,
    )
    outcome = FetchOutcome()
    set_reason(outcome, reason)
    assert (outcome.reason, outcome.cause) == (coarse, reason)
    assert row_of_outcome(outcome) is reason.row
    set_reason(outcome, Reason.DNS)
    assert (outcome.reason, outcome.cause) == ("dns", "")


def test_statuses_have_rows():
    """429 and 503 pause the host; 429 and 5xx are tried again."""
    rows = {reason: row_of(reason) for reason in MADE}
    assert all(row.ends is Outcome.FAILED and row.words for row in rows.values())
    assert {reason for reason, row in rows.items() if row.retry is Retry.TRIES} == {
        "http_429",
        "http_500",
        "http_503",
        "http_599",
    }
    assert {reason: row.pause for reason, row in rows.items() if row.pause is not Pause.NONE} == {
        "http_429": Pause.REFUSAL,
        "http_503": Pause.PASSING,
    }
    assert [rows[reason].verdict for reason in MADE] == [
        ListVerdict.NOT_FOUND,
        ListVerdict.NOT_FOUND,
        ListVerdict.HTTP_ERROR,
        ListVerdict.SERVER_ERROR,
        ListVerdict.SERVER_ERROR,
        ListVerdict.SERVER_ERROR,
        ListVerdict.HTTP_ERROR,
        ListVerdict.FAILED,
    ]
    assert rows["http_404"] is row_of("http_404")
    assert words("failed", "http_404") == "the server answered 404 (not found)"
    assert words("failed", "http_799") == "the server answered 799"
    assert words("failed", "tunnel_403") == "its proxy refuses CONNECT by status 403"
    assert (status_of("http_404"), status_of("tunnel_403"), status_of("http_4040"), status_of("http_x")) == (
        404,
        0,
        0,
        0,
    )
    assert (tunnel_status_of("tunnel_403"), tunnel_status_of("http_403")) == (403, 0)


def test_the_rows_that_a_status_may_add_are_few():
    """An unknown word is not kept: words of a message must not fill the memory."""
    assert row_of("http_\u0664\u0660\u0664") is UNKNOWN
    assert row_of("http_404x") is UNKNOWN
    assert row_of("new_word") is UNKNOWN


@pytest.mark.parametrize("outcome", [one.name.lower() for one in Outcome if one])
def test_an_unknown_word_is_shown_as_it_is(outcome):
    """A row of a later version is no reason to fall silent."""
    assert words(outcome, "new_word") == f"{outcome} (new_word)"
    assert (kind_of(outcome, "new_word"), verdict_of(outcome, "new_word")) == ("failed", ListVerdict.FAILED)


def test_an_unknown_word_pauses_no_host_and_is_not_tried_again():
    """As a failure of the URL alone; an unknown cause leaves what follows from the reason."""
    assert (UNKNOWN.ends, UNKNOWN.retry, UNKNOWN.pause) == (Outcome.FAILED, Retry.NEVER, Pause.NONE)
    assert (UNKNOWN.unreachable, UNKNOWN.no_outcome) == (False, False)
    assert row_of_outcome(FetchOutcome(reason="blocked", cause="new_word")) is Reason.BLOCKED.row
    assert row_of_outcome(FetchOutcome(reason="new_word")) is UNKNOWN


def test_a_known_reason_of_another_outcome_is_not_explained_wrongly():
    assert words("dropped", "dns") == "dropped (dns)"
    assert kind_of("failed", "robots") == "failed"


# ---- the sources


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in PACKAGES.glob("nephila*/**/*.py"):
        if "reasons" not in path.parts:
            yield str(path.relative_to(PACKAGES)), ast.parse(path.read_text())


def literals_of(tree: ast.Module) -> Iterator[str]:
    """Literals that are assigned to, passed as or compared with a reason, or returned as one."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target], value=value) if "reason" in ast.unparse(target):
                yield from _texts(value)
            case ast.keyword(arg="reason", value=value):
                yield from _texts(value)
            case ast.Compare() if "reason" in ast.unparse(node):
                yield from _texts(node)
            case ast.Call(func=called, args=[first, *_]) if ast.unparse(called).endswith(("Error", "Refused")):
                yield from _texts(first)
            case ast.Call(args=arguments) if any("FetchResult." in ast.unparse(one) for one in arguments):
                for one in arguments:
                    yield from _texts(one)


def _texts(tree: ast.expr) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_reason_is_written_by_hand():
    """mypy finds a literal where a fetcher needs a reason; a field of a message is a text for it."""
    known = {str(one) for one in Reason if one}
    found = {(name, text) for name, tree in sources() for text in literals_of(tree)}
    assert len(found) > 20
    assert {(n, text) for n, text in found if text in known or text.startswith(("http_", "tunnel_"))} == set()


def test_alerts_ask_for_reasons_that_exist():
    text = (PACKAGES.parent / "charts" / "nephila" / "alerts.yaml").read_text()
    asked = {one for found in re.findall(r'scheduler_\w+{[^}]*reason=~?"([^"]+)"', text) for one in found.split("|")}
    assert asked
    assert {one for one in asked if row_of(one) is UNKNOWN} == set()


def test_each_reason_is_written_by_a_service():
    """The table does not outlive the reasons."""
    used = {
        node.attr
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason"
    }
    assert set(Reason.__members__) - used == set()
