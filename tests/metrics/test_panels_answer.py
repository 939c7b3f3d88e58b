"""A short live crawl over Kafka: every query of every dashboard is answered by a real Prometheus."""

from __future__ import annotations

import os

import pytest

from tests.metrics.panels import answer, panels, unanswered
from tests.metrics.recording import NAMESPACE, Wave, recorded
from tests.metrics.web import ManyHosts
from tools import kafka_broker, postgres, prometheus

PARTS = (kafka_broker.Missing, postgres.NoServer, prometheus.Missing)


@pytest.mark.full
def test_every_panel_has_a_series(tmp_path):
    web = ManyHosts(12, 6, 0.05)
    try:
        with recorded(tmp_path, web, [Wave(0, 0, 12)], concurrency=8, interval_s=1, run_s=25) as recording:
            found = list(panels(NAMESPACE, "10s"))
            for panel in found:
                answer(recording.prometheus, panel, recording.began, recording.ended, 2)
    except PARTS as missing:
        if os.environ.get("CI") or os.environ.get("NEPHILA_REQUIRE_ALL"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    assert len(found) > 80
    assert unanswered(found) == []
