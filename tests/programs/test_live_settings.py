"""Live settings of a service program: applied, taken back, and ignored when this version does not know them."""

from __future__ import annotations

import logging

import pytest
from nephila.kernel.messages import Setting
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import SETTINGS
from nephila.programs.service.live_settings import LiveSettings

from tests.fake_kafka import FakeKafka, FakeKafkaBus


@pytest.fixture
def bus():
    """A bus whose program reads settings; the root logger's level is restored."""
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.INFO)
    made = FakeKafkaBus(FakeKafka(), ManualClock(), "parser-0")
    made.eager = True
    LiveSettings(made)
    yield made
    logging.getLogger().setLevel(level)


def test_the_level_of_logs_is_changed_and_taken_back(bus):
    """Without a restart; the default is the level at the start."""
    bus.publish(SETTINGS, 0, Setting("log_level", b'"debug"'))
    assert logging.getLogger().level == logging.DEBUG
    bus.publish(SETTINGS, 0, Setting("log_level", b"null", deleted=True))
    assert logging.getLogger().level == logging.INFO


@pytest.mark.parametrize("setting", [Setting("colour", b"1"), Setting("log_level", b'"loud"')])
def test_a_setting_of_another_version_is_ignored(bus, caplog, setting):
    """One warning; the program continues."""
    bus.publish(SETTINGS, 0, setting)
    assert logging.getLogger().level == logging.INFO
    assert "ignored:" in caplog.text
