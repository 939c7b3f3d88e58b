"""Live settings of a service program: applied, taken back, and ignored when this version does not know them."""

from __future__ import annotations

import logging

import msgspec
import pytest
from nephila.kernel.layout import LAYOUT, LayoutSetting
from nephila.kernel.live_settings import SettingScope, check, key_of, parse_key
from nephila.kernel.messages import Setting
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import SETTINGS
from nephila_cluster.service.live_settings import LiveSettings

from tests.fake_kafka import FakeKafka, FakeKafkaBus


@pytest.fixture
def bus():
    """A bus whose program reads settings; the root logger's level is restored."""
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.INFO)
    made = FakeKafkaBus(FakeKafka(), ManualClock(), "parser-0")
    made.eager = True
    made.speeds, made.layouts = [], []
    LiveSettings(made, SettingScope("parser", "parser-0"), lambda: {"speed": made.speeds.append}, made.layouts.append)
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


def test_a_setting_of_one_member_has_precedence_and_gives_way_when_taken_back(bus):
    """Whichever comes first; a setting of another member changes nothing here."""
    bus.publish(SETTINGS, 0, Setting("speed", b"9"))
    bus.publish(SETTINGS, 0, Setting("fetchparse/parser-0:speed", b"1"))
    bus.publish(SETTINGS, 0, Setting("downloader/other:speed", b"2"))
    assert bus.speeds == [9]
    me = "downloader/parser-0:log_level"
    bus.publish(SETTINGS, 0, Setting(me, b'"debug"'))
    assert logging.getLogger().level == logging.INFO
    for setting in (
        Setting("parser/parser-0:log_level", b'"debug"'),
        Setting("log_level", b'"error"'),
    ):
        bus.publish(SETTINGS, 0, setting)
        assert logging.getLogger().level == logging.DEBUG
    bus.publish(SETTINGS, 0, Setting("parser/parser-0:log_level", b"null", deleted=True))
    assert logging.getLogger().level == logging.ERROR
    bus.publish(SETTINGS, 0, Setting("log_level", b"null", deleted=True))
    assert logging.getLogger().level == logging.INFO


@pytest.mark.parametrize("name", ["speed", "connections", "depth", "log_level"])
def test_the_key_of_a_setting_has_its_member_and_its_name(name):
    """For one member or for all; a member may have dots and dashes."""
    for scope in (SettingScope(), SettingScope("downloader", "web-downloader-0.example")):
        assert parse_key(key_of(scope, name)) == (scope, name)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("speed", 0.5, ""),
        ("speed", 0, "speed: '0' is none of the numbers above 0"),
        ("connections", 20, ""),
        ("connections", True, "connections: 'True' is none of the numbers from 1"),
        ("connections", 0, "is none of"),
        ("downloader/d:depth", 3, "depth is a setting of scheduler, and d is a downloader"),
        ("scheduler/s:depth", 0, ""),
        ("scheduler/s:depth", None, ""),
        ("scheduler/s:colour", 1, "no live setting 'colour'"),
    ],
)
def test_a_value_is_checked_before_it_is_stored(key, value, problem):
    """In one line that names the values."""
    assert problem in check(key, value)
    assert bool(problem) == bool(check(key, value))


def test_the_number_of_partitions_after_a_growth_goes_to_the_bus(bus):
    """It is no setting of a service: no member reads it as one."""
    bus.publish(SETTINGS, 0, Setting(LAYOUT, msgspec.json.encode(LayoutSetting(16, 32, 64))))
    assert bus.layouts == [LayoutSetting(16, 32, 64)]
    assert bus.speeds == []
