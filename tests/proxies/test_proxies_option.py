"""--proxy: entries of the setting, and what run.json keeps of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.option_table import defaults
from nephila.programs.service_configs import make_configs
from nephila_proxies.option import proxies_of, redacted


def test_entries_become_settings(tmp_path: Path) -> None:
    """Proxies, files by their absolute name, lists; the pool with its scores lies in the directory."""
    given = [
        "http://u:secret@203.0.113.9:3128",
        "socks5://198.51.100.4 country=de",
        "file p.txt class=x",
        "list http://l.test/",
    ]
    configs = make_configs({**defaults(), "proxy": given}, tmp_path, ("sqlite",))
    assert configs.downloader.proxies.sources == (
        given[0],
        given[1],
        f"file {os.path.abspath('p.txt')} class=x",
        given[3],
    )
    assert configs.downloader.proxies.pool == str(tmp_path / "proxies.json")
    assert make_configs(defaults(), tmp_path, ("sqlite",)).downloader.proxies.sources == ()


@pytest.mark.parametrize("entry", ["ftp://203.0.113.9:1", "http://u:secret@:80", "http://u:secret@p:99999", ""])
def test_a_mistake_is_one_line_without_the_password(entry: str) -> None:
    """It names the number of the option and the form that is expected."""
    with pytest.raises(UsageError, match=r"--proxy 2: .*; expected http://user:password@host:port") as caught:
        proxies_of(["http://p:1", entry])
    assert "secret" not in str(caught.value)


def test_run_json_keeps_no_password() -> None:
    """A resumed crawl names the proxy whose password is missing; proxies without one are used again."""
    given = ["http://u:secret@p:1 class=x", "http://p:2", "file /etc/p.txt"]
    kept = redacted(given)
    assert kept == ["http://u:...@p:1 class=x", "http://p:2", "file /etc/p.txt"]
    with pytest.raises(UsageError, match=r"--proxy http://u@p:1: give it again with its password"):
        proxies_of(kept)
    assert proxies_of(kept[1:]) == tuple(kept[1:])
