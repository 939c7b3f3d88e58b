"""`nephila sites … --server` gives the same state and the same lines as the command in the directory."""

from __future__ import annotations

import json

import pytest
from nephila_harvest.sites.store import open_store

from tests.control.test_sites_of_the_api import control_of

SITES = """\
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: default}
spec: {frequency: 6h}
---
apiVersion: nephila.dev/v1
kind: Site
metadata: {name: news}
spec:
  score: 3
  scope: {exclude: ["/ads/"]}
  directories:
    - {name: world, url: "http://news.test/world/", topPages: 2}
    - {name: asia, url: "http://news.test/asia/", cookies: true, seeds: [{feed: "http://news.test/asia.rss"}]}
"""


@pytest.fixture
def both(nephila, tmp_path, monkeypatch):
    """Runs a command in a directory and over a server; returns both results."""
    (tmp_path / "server").mkdir()
    control = control_of(tmp_path / "server" / "sites.db")
    monkeypatch.setattr("nephila_control.commands.client.at_url", lambda url, token: control)
    (tmp_path / "sites.yaml").write_text(SITES)

    def run(*arguments):
        return [
            nephila("sites", *arguments, *place)
            for place in (("--out", str(tmp_path / "here")), ("--server", "http://server.test"))
        ]

    return run


def state(directory):
    """The documents of all sites of a directory."""
    with open_store(directory / "sites.db") as store:
        return {name: site.content for name, site in store.sites().sites.items()}


def test_each_command_gives_the_same_lines_and_the_same_state(both, tmp_path):
    """From the first apply to the last deletion."""
    for arguments in (
        ("apply", "-f", str(tmp_path / "sites.yaml")),
        ("apply", "-f", str(tmp_path / "sites.yaml"), "--json"),
        ("list",),
        ("list", "--json"),
        ("export",),
        ("export", "--format", "yaml"),
        ("delete", "news.asia"),
        ("delete", "default", "news", "--json"),
        ("list",),
    ):
        here, server = both(*arguments)
        assert (here.code, here.out) == (0, server.out), arguments
        assert state(tmp_path / "here") == state(tmp_path / "server"), arguments


def test_a_deletion_says_what_is_removed_and_what_stays(both, tmp_path):
    """A directory by the name of its job."""
    both("apply", "-f", str(tmp_path / "sites.yaml"))
    for ran in both("delete", "news.asia"):
        assert ran.out == "news: changed (1 directories)\nnews.asia: removed; its rows stay\n"
    for ran in both("delete", "news.africa"):
        assert ran.code == 1
        assert "there is no site or directory 'news.africa'" in ran.err


def test_settings_are_explained_from_a_server(both, tmp_path):
    """With their origins."""
    both("apply", "-f", str(tmp_path / "sites.yaml"))
    here, server = (json.loads(ran.out) for ran in both("explain", "http://news.test/world/x", "--json"))
    assert {path: (value["value"], value["origin"]) for path, value in here["values"].items()} == {
        path: (value["value"], value["origin"]) for path, value in server["values"].items()
    }


def test_a_server_has_its_own_file(nephila):
    """`--sites` names a file here."""
    ran = nephila("sites", "list", "--server", "http://server.test", "--sites", "x.db")
    assert (ran.code, "exclude each other" in ran.err) == (2, True)
