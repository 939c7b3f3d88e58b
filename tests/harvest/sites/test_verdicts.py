"""Every end of a fetch has a verdict, and every verdict has what follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.reasons.row import ListVerdict
from nephila_harvest.sites.verdicts import EFFECTS, of_row


def test_every_verdict_has_an_effect_and_every_fault_a_proposal():
    assert set(EFFECTS) == set(ListVerdict)
    assert all(bool(effect.proposal) == effect.fault for effect in EFFECTS.values())


def test_the_docs_name_every_verdict():
    docs = Path("docs/harvest.md").read_text()
    assert [one for one in ListVerdict if f"`{one}`" not in docs] == []


def test_an_unknown_reason_is_a_fault():
    state = of_row("u", {"outcome": "failed", "reason": "of_a_newer_version", "status": 0, "final_url": "", "meta": ""})
    assert (state.verdict, state.is_fault) == (ListVerdict.FAILED, True)


def row(outcome="stored", reason="", status=200, final_url="", meta=""):
    """What a ledger has about a list."""
    return {"outcome": outcome, "reason": reason, "status": status, "final_url": final_url, "meta": meta}


def test_a_list_that_redirects_is_proposed_with_its_target():
    """The proposal is shown as it is; a list that was fetched has none."""
    moved = of_row("http://a.test/old", row("dropped", "redirect", 301, "http://a.test/new"))
    assert moved.proposal == "set the url of the directory to http://a.test/new"
    assert of_row("http://a.test/", row()).proposal == ""


@pytest.mark.parametrize(
    ("meta", "links"),
    [('{"links": "12"}', 12), ('{"links": 12}', 12), ('{"links": "many"}', 0), ("{}", 0), ("", 0), ("no JSON", 0)],
)
def test_links_of_a_list_are_read_from_its_metadata(meta, links):
    """Metadata that cannot be read count no link."""
    assert of_row("http://a.test/", row(meta=meta)).links == links
