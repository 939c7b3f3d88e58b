"""Sections of settings: one name in messages, files and variables; a section of an absent package is refused."""

from __future__ import annotations

import pytest
from nephila.downloader.config import DownloaderConfig
from nephila.kernel.runtime import extensions
from nephila.kernel.runtime.config import by_section, load, replaced, settings
from nephila.kernel.runtime.errors import UsageError

OLD = {
    "dns_ttl_s": "dns.ttl_s",
    "browser_enabled": "browser.enabled",
    "proxy_pool": "proxies.pool",
    "total_timeout_s": "http.total_timeout_s",
    "auth": "middleware.auth",
    "networks": "limits.networks",
}
"""Names without their section, and the settings that are meant."""


def test_a_section_is_a_map():
    config = load(DownloaderConfig, {"dns": {"ttl_s": 60}, "window": 5}, "here")
    assert (config.dns.ttl_s, config.dns.stale_s, config.window) == (60, 86_400, 5)


def test_a_variable_has_two_underscores_before_each_name(monkeypatch):
    """It overrides one setting; the others of the section stay."""
    monkeypatch.setenv("NEPHILA_DOWNLOADER__DNS__TTL_S", "7")
    monkeypatch.setenv("NEPHILA_DOWNLOADER__DNS__SERVERS", '["192.0.2.1", "192.0.2.2"]')
    config = load(DownloaderConfig, {"dns": {"ttl_s": 60, "stale_s": 1}}, "here", "downloader")
    assert (config.dns.ttl_s, config.dns.stale_s, config.dns.servers) == (7, 1, ("192.0.2.1", "192.0.2.2"))


@pytest.mark.parametrize(("name", "path"), OLD.items())
def test_a_name_without_its_section_is_unknown_and_the_setting_is_named(monkeypatch, name, path):
    with pytest.raises(UsageError, match=rf"^here: unknown setting '{name}'; did you mean '{path}'\?$"):
        load(DownloaderConfig, {name: 1}, "here")
    monkeypatch.setenv(f"NEPHILA_DOWNLOADER__{name.upper()}", "1")
    variable = f"NEPHILA_DOWNLOADER__{path.upper().replace('.', '__')}"
    with pytest.raises(UsageError, match=rf"names no setting of downloader; did you mean {variable}\?$"):
        load(DownloaderConfig, {}, "here", "downloader")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"proxies": ["http://a:1"]}, "here: proxies is a section with the settings sources, "),
        ({"dns": None}, "here: dns is a section with the settings "),
        ({"dns": {"user_agent": "a"}}, r"here: unknown setting 'dns.user_agent'; did you mean 'http.user_agent'\?"),
        ({"dns.ttl_s": 5}, "here: unknown setting 'dns.ttl_s'; a section is a map with its settings"),
        ({5: 5}, "here: unknown setting '5'; known are "),
        ({"dns": {"ttl_s": -1}}, "here: dns.ttl_s must be a number from 0 on, not -1"),
        ({"dns": {"ttl_s": "long"}}, r"here: .* - at `\$.dns.ttl_s`"),
    ],
)
def test_a_wrong_value_is_one_line_with_the_path(values, says):
    with pytest.raises(UsageError, match=says) as refused:
        load(DownloaderConfig, values, "here")
    assert "\n" not in str(refused.value)


def test_a_wrong_type_in_a_variable_of_a_section_names_the_variable(monkeypatch):
    monkeypatch.setenv("NEPHILA_DOWNLOADER__DNS__TTL_S", "long")
    with pytest.raises(UsageError, match=r"^environment: NEPHILA_DOWNLOADER__DNS__TTL_S: Expected `float`"):
        load(DownloaderConfig, {}, "here", "downloader")


@pytest.mark.parametrize(
    ("section", "package"), [("browser", "nephila_browser"), ("proxies", "nephila_proxies")], ids=str
)
def test_a_section_of_an_absent_package_is_refused_if_it_is_set(monkeypatch, section, package):
    """Its defaults are no reason to refuse anything."""
    monkeypatch.setattr(extensions, "_has_package", lambda target: not target.startswith(package))
    path = next(path for path in settings(DownloaderConfig) if path.startswith(f"{section}."))
    load(DownloaderConfig, {"window": 5}, "here", "downloader")
    line = f"the package {package} is not installed; install nephila as a whole"
    with pytest.raises(UsageError, match=f"^here: {path} is set, and {line}$"):
        load(DownloaderConfig, by_section({path: ()}), "here", "downloader")
    variable = f"NEPHILA_DOWNLOADER__{path.upper().replace('.', '__')}"
    monkeypatch.setenv(variable, "[]")
    with pytest.raises(UsageError, match=f"^environment: {variable} is set, and {line}$"):
        load(DownloaderConfig, {}, "here", "downloader")


def test_settings_are_replaced_by_path():
    config = replaced(DownloaderConfig(), {"dns.ttl_s": 5.0, "dns.stale_s": 0.0, "window": 9})
    assert (config.dns.ttl_s, config.dns.stale_s, config.window) == (5, 0, 9)
    assert config.http is DownloaderConfig().http


def test_values_by_path_do_not_change_the_map_they_are_added_to():
    values = {"dns": {"ttl_s": 1}, "http": 5}
    assert by_section({"dns.stale_s": 2, "http.contact": "a", "limits.per_host": 3}, values) == {
        "dns": {"ttl_s": 1, "stale_s": 2},
        "http": 5,
        "limits": {"per_host": 3},
    }
    assert values == {"dns": {"ttl_s": 1}, "http": 5}
