"""Every end of a fetch has a verdict, and every verdict has what follows from it."""

from __future__ import annotations

from pathlib import Path

from nephila.harvest.sites.verdicts import EFFECTS, of_row
from nephila.kernel.reasons.row import Verdict


def test_every_verdict_has_an_effect_and_every_fault_a_proposal():
    assert set(EFFECTS) == set(Verdict)
    assert all(bool(effect.proposal) == effect.fault for effect in EFFECTS.values())


def test_the_docs_name_every_verdict():
    docs = Path("docs/harvest.md").read_text()
    assert [one for one in Verdict if f"`{one}`" not in docs] == []


def test_an_unknown_reason_is_a_fault():
    state = of_row("u", {"outcome": "failed", "reason": "of_a_newer_version", "status": 0, "final_url": "", "meta": ""})
    assert (state.verdict, state.is_fault) == (Verdict.FAILED, True)
