"""kube-score finds nothing new in an example of the chart."""

from __future__ import annotations

import pytest

from tests.required import required
from tools.install import Missing
from tools.kube_score import EXAMPLES, KUBE_SCORE, findings, unexpected


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_has_no_new_finding(example: str) -> None:
    with required(Missing):
        KUBE_SCORE.find()
    found = findings(example)
    assert found
    assert unexpected(found) == []


def test_a_finding_of_another_object_is_new() -> None:
    """What stays for the broker does not stay for a service."""
    low = ("container-security-context-user-group-id", "The container is running with a low user ID")
    assert unexpected({low: {"StatefulSet"}}) == []
    assert unexpected({low: {"StatefulSet", "Deployment"}}) == [f"{low[0]}: {low[1]}: Deployment"]
    assert unexpected({("new-check", "Bad"): {"Pod"}}) == ["new-check: Bad: Pod"]
