"""Settings in effect: where each comes from, and no secret among them."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.storage.config import StorageConfig
from nephila_control.system_types import DnsState, ListConfiguration, Network, ProxyRow
from nephila_control.system_views import configuration, first_proxies, joined

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


def network(*proxies: ProxyRow, lookups: int = 0, lookup_s: float = 0.0) -> Network:
    dns = DnsState(names=3, hits=5, lookups=lookups, lookup_s=lookup_s, failures=1, refreshes=2, stale_served=4)
    return Network(dns=dns, proxies=list(proxies), proxies_total=len(proxies))


def proxy(name: str, state: str = "alive", success: float = 1.0, response_s: float = 0.0, bans: int = 0) -> ProxyRow:
    return ProxyRow(
        name=name, state=state, kind="", country="", success=success, response_s=response_s, bans=bans, evictions=1
    )


def test_the_networks_of_groups_are_one():
    """Counts are added, the time of a look-up is that of all look-ups, and a proxy is a row once."""
    one = network(proxy("p", "alive", 1.0, 0.2, 1), proxy("q"), lookups=1, lookup_s=0.4)
    two = network(proxy("p", "evicted", 0.5, 0.0, 2), lookups=3, lookup_s=0.2)
    three = network(proxy("p", "evicted", 0.6, 0.4))
    whole = joined([one, two, three])
    assert (whole.dns.names, whole.dns.hits, whole.dns.lookups, whole.dns.stale_served) == (9, 15, 4, 12)
    assert whole.dns.lookup_s == pytest.approx(0.25)
    assert whole.proxies_total == 2
    first, second = whole.proxies
    assert (first.name, first.state, first.bans, first.evictions) == ("p", "evicted", 3, 3)
    assert (first.success, first.response_s) == (pytest.approx(0.7), pytest.approx(0.3))
    assert second == proxy("q")


def test_one_group_is_its_network():
    only = network(proxy("p", "candidate", 0.123456, 0.2, 1), lookups=7, lookup_s=0.25)
    assert joined([only]) == only


def test_the_answer_has_the_first_proxies_and_counts_all():
    whole = first_proxies(network(proxy("z"), *(proxy(f"p{n:03}", "evicted", 0.98765) for n in range(250))))
    assert [row.name for row in whole.proxies[:2]] == ["z", "p000"]
    assert (len(whole.proxies), whole.proxies_total, whole.proxies[1].success) == (200, 251, 0.988)
