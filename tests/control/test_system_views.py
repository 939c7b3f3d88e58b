"""Settings in effect: where each comes from, and no secret among them."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.storage.config import StorageConfig
from nephila_control.system_types import ListConfiguration
from nephila_control.system_views import configuration

from tests.downloader_settings import downloader_config

SECRET = "hunter2"  # noqa: S105 - of a test


@pytest.fixture
def values(monkeypatch):
    """Name → value of a downloader and a storage."""
    monkeypatch.setenv("NEPHILA_DOWNLOADER__CONCURRENCY", "7")
    configs = {
        "downloader": downloader_config(sources=(f"http://u:{SECRET}@p.test:1",), concurrency=7, total_timeout_s=9.0),
        "storage": StorageConfig(directory=Path(), store=f"postgresql://u:{SECRET}@db.test/x"),
    }
    return lambda **asked: configuration(configs, ListConfiguration(**asked)).values


def test_each_setting_says_where_it_comes_from(values):
    """Of the environment, of the command, or the default."""
    found = {one.name: (one.value, one.source) for one in values(section="downloader")}
    assert found["concurrency"] == ("7", "environment")
    assert found["http.total_timeout_s"] == ("9.0", "options")
    assert found["http.user_agent"][1] == "default"
    assert all(one.source != "default" for one in values(changed=True))
    assert {one.section for one in values()} == {"downloader", "storage"}


def test_no_value_has_a_secret(values):
    """That there is one is said."""
    assert not any(SECRET in one.value for one in values())
    assert {one.name for one in values() if one.secret} >= {"proxies.sources", "store"}
