"""A short live crawl over Kafka: every query of every dashboard is answered by a real Prometheus."""

from __future__ import annotations

import pytest

from tests.metrics.panels import answer, panels, unanswered
from tests.metrics.recording import NAMESPACE, Wave, recorded
from tests.metrics.web import ManyHosts
from tests.required import required
from tools.install import Missing
from tools.postgres import NoServer


@pytest.mark.full
def test_every_panel_has_a_series(tmp_path):
    web = ManyHosts(12, 6, 0.05)
    # The later waves bring new names and failures between two scrapes: a rate needs a change after the first scrape.
    waves = [Wave(0, 0, 6), Wave(6, 6, 9), Wave(12, 9, 12)]
    with (
        required(Missing, NoServer),
        recorded(tmp_path, web, waves, concurrency=8, interval_s=1, run_s=25) as recording,
    ):
        found = list(panels(NAMESPACE, "10s"))
        for panel in found:
            answer(recording.prometheus, panel, recording.began, recording.ended, 2)
    assert len(found) > 80
    assert unanswered(found) == []
