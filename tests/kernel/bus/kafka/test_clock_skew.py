"""A wrong clock is told from a slow network."""

from __future__ import annotations

import pytest
from nephila.kernel.bus.kafka.clock_skew import ClockSkew


@pytest.mark.parametrize(
    ("sent", "stamped", "answered", "says"),
    [
        (100.0, 100.2, 100.4, ""),
        (100.0, 99.5, 100.1, ""),
        (105.0, 100.0, 105.1, "5.0 s ahead of"),
        (95.0, 100.0, 95.1, "4.9 s behind"),
        (100.0, 100.2, 160.0, ""),
        (100.0, 159.9, 160.0, ""),
    ],
)
def test_a_clock_that_is_off(sent, stamped, answered, says):
    """Only what no delay explains; within a second all is well."""
    skew = ClockSkew()
    skew.observe(sent, stamped, answered)
    assert (says in skew.trouble) if says else skew.trouble == ""


def test_a_clock_that_was_set_is_well_again():
    """The last record counts."""
    skew = ClockSkew()
    skew.observe(105.0, 100.0, 105.1)
    assert skew.trouble
    skew.observe(101.0, 101.05, 101.1)
    assert skew.trouble == ""
