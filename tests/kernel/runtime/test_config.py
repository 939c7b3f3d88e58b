"""Configuration: unknown keys and wrong types are one clear line; the environment overrides."""

from __future__ import annotations

import pytest
from nephila.downloader.config import DownloaderConfig
from nephila.kernel.runtime.config import check_environment, load, secret_variable
from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.config import SchedulerConfig
from nephila.storage.config import StorageConfig


def test_values_and_defaults():
    """What is given is taken, the rest has its default."""
    config = load(SchedulerConfig, {"tries": 5}, "test")
    assert (config.tries, config.partitions) == (5, 64)


def test_an_unknown_key_is_refused_with_a_suggestion():
    """The line names place, key and the likely one."""
    with pytest.raises(UsageError, match=r"job.yaml: unknown setting 'trys'; did you mean 'tries'\?"):
        load(SchedulerConfig, {"trys": 5}, "job.yaml")


def test_a_wrong_type_is_refused():
    """The line names the field."""
    with pytest.raises(UsageError, match=r"here: .*tries"):
        load(SchedulerConfig, {"tries": "many"}, "here")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("x-key: secret", "HEADERS is a list: write it in brackets, NEPHILA_DOWNLOADER__HTTP__HEADERS='"),
        ("x-key", "HEADERS is a list: write it in brackets"),
        ("[1]", "environment: NEPHILA_DOWNLOADER__HTTP__HEADERS: Expected `str`, got `int`"),
    ],
)
def test_a_wrong_type_in_the_environment_names_the_variable_and_not_its_value(monkeypatch, value, says):
    monkeypatch.setenv("NEPHILA_DOWNLOADER__HTTP__HEADERS", value)
    with pytest.raises(UsageError) as refused:
        load(DownloaderConfig, {}, "command line", "downloader")
    assert says in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "command line" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("lease_s", -5, "lease_s must be a number from 0 on, not -5.0"),
        ("lease_s", "nan", "lease_s must be a number from 0 on, not nan"),
        ("backoff_max_s", "inf", "backoff_max_s must be a number from 0 on, not inf"),
        ("max_hops", -1, "max_hops must be a number from 0 on, not -1"),
        ("concurrency", 0, "concurrency"),
    ],
)
def test_a_number_that_is_no_setting_is_refused(name, value, says):
    """Below 0, none at all, or nothing where something has to be."""
    with pytest.raises(UsageError, match=f"^here: .*{says}"):
        load(SchedulerConfig, {name: value}, "here")


def test_the_environment_overrides(monkeypatch):
    """NEPHILA_<SERVICE>__<FIELD> is read as the field's type."""
    monkeypatch.setenv("NEPHILA_SCHEDULER__WINDOW", "7")
    monkeypatch.setenv("NEPHILA_SCHEDULER__RETRY_DELAY_S", "0.5")
    config = load(SchedulerConfig, {"window": 9}, "here", "scheduler")
    assert (config.window, config.retry_delay_s) == (7, 0.5)


def test_lists_in_the_environment(monkeypatch):
    """A list is written as JSON; half a one is named."""
    monkeypatch.setenv("NEPHILA_SCHEDULER__NETWORKS", '["10.0.0.0/8=16/0.05", "192.0.2.1=1/2"]')
    assert load(SchedulerConfig, {}, "here", "scheduler").networks == ("10.0.0.0/8=16/0.05", "192.0.2.1=1/2")
    monkeypatch.setenv("NEPHILA_SCHEDULER__NETWORKS", '["10.0.0.0/8=16/0.05"')
    with pytest.raises(UsageError, match="NEPHILA_SCHEDULER__NETWORKS begins as a JSON list"):
        load(SchedulerConfig, {}, "here", "scheduler")


def test_a_misspelt_environment_variable_is_refused(monkeypatch):
    """A setting that would silently do nothing is an error."""
    monkeypatch.setenv("NEPHILA_SCHEDULER__WINDWO", "7")
    with pytest.raises(UsageError, match=r"NEPHILA_SCHEDULER__WINDWO .* did you mean NEPHILA_SCHEDULER__WINDOW\?"):
        load(SchedulerConfig, {}, "here", "scheduler")


def test_a_secret_is_read_from_a_file(tmp_path, monkeypatch):
    """From settings and from the environment, without the line end; the environment overrides."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("postgresql://a:one@db/n\n")
    second.write_text("postgresql://a:two@db/n\r\n")
    values = {"directory": "rows", "store_file": str(first)}
    assert load(StorageConfig, values, "here", "storage").store == "postgresql://a:one@db/n"
    monkeypatch.setenv("NEPHILA_STORAGE__STORE_FILE", str(second))
    check_environment({"storage": StorageConfig})
    assert load(StorageConfig, values, "here", "storage").store == "postgresql://a:two@db/n"
    assert secret_variable("NEPHILA_STORAGE__STORE") == "postgresql://a:two@db/n"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"store_file": "nowhere"}, "here: store_file nowhere: No such file or directory"),
        ({"store_file": "EMPTY"}, "here: store_file .*EMPTY is empty"),
        ({"store_file": "BYTES"}, "here: store_file .*BYTES is not UTF-8 text"),
        ({"store_file": "a", "store": "b"}, "here: store and store_file are both set; set one of them"),
        ({"writer_file": "a"}, "here: unknown setting 'writer_file'"),
    ],
)
def test_a_secret_that_cannot_be_read_is_refused(tmp_path, monkeypatch, values, says):
    """Only secrets have files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "EMPTY").write_text("\n")
    (tmp_path / "BYTES").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=says):
        load(StorageConfig, {"directory": "rows", **values}, "here", "storage")
