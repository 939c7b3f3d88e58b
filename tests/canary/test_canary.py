"""The short form of `make canary`: the crawler and a real Chromium reach no private address over any channel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("chromium")
def test_no_channel_reaches_a_private_address() -> None:
    """Every channel is tried with the guard; the attempts without it, which prove the channel, are in `make canary`."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.canary.canary", "--tries", "200", "--no-control"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'services'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "WebRTC" in run.stdout
