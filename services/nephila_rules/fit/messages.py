"""A verdict as text: which field of which rule deviates, the usual and the present share, and what to do."""

from __future__ import annotations

from nephila.kernel import messages as m

from nephila_rules.fit.counts import MATCH
from nephila_rules.fit.drift_test import FEWER, GONE
from nephila_rules.fit.health import ITEMS, LINKS, TYPE

_WHAT = {ITEMS: "items", LINKS: "links of the rule", MATCH: "content that the rule matches"}
_KINDS = {
    GONE: "found on",
    FEWER: "found on",
    TYPE: "of its type on",
    "digits": "has digits on",
    "length": "as long as usual on",
    "repeated": "other than on the page before on",
}
MAX_SHOWN = 3


def describe(finding: m.RuleFinding) -> str:
    """A finding in words, as `price: found on 98 % of pages, now on 0 %`."""
    subject = _WHAT.get(finding.field, finding.field)
    return (
        f"{subject}: {_KINDS.get(finding.kind, finding.kind)} {finding.before:.0%} of pages, now on {finding.now:.0%}"
    )


def describe_all(verdict: m.RuleVerdict) -> str:
    """The first findings as text."""
    lines = [describe(finding) for finding in verdict.findings[:MAX_SHOWN]]
    more = len(verdict.findings) - MAX_SHOWN
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")


def log_line(verdict: m.RuleVerdict) -> str:
    """One line for a log."""
    return (
        f"rule {verdict.rule} (version {verdict.version}) is degraded: {describe_all(verdict)}. Its rows are marked."
        f" Run: nephila rules try URL --rule {verdict.rule}; correct the rule; it is reloaded automatically"
    )
