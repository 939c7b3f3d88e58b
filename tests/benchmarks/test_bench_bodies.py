"""The bodies of the bench of buses compress as pages do."""

from __future__ import annotations

import zlib

from benchmarks.bench_bus import body


def test_a_body_compresses_about_as_well_as_a_page() -> None:
    """Pages of the web: 3 to 8 times."""
    data = body(1)
    assert 3 < len(data) / len(zlib.compress(data)) < 8
    assert body(1) != body(2)
