"""`nephila doctor`: what is missing, and the remedy."""

from __future__ import annotations

import json
import os
import re
import socket
import tomllib
from importlib import metadata
from pathlib import Path

import nephila.native
import pytest
from nephila.cli.main import EXTRAS
from nephila.kernel.runtime.extras import install_line
from nephila_tools import doctor


def test_this_machine_is_usable(nephila, tmp_path, monkeypatch):
    """The tests run, so crawling works; every check is one line."""
    monkeypatch.chdir(tmp_path)
    ran = nephila("doctor")
    assert ran.code == 0
    assert "This machine can crawl.\n" in ran.out
    assert "command" in ran.out.split("More is needed by:\n")[1].splitlines()[0]
    result = json.loads(nephila("doctor", "--json").out)
    assert result["usable"] is True
    assert {"python", "native core", "uvloop", "sqlite", "open files", "directory", "dns", "clock"} <= {
        check["name"] for check in result["checks"]
    }


def test_nothing_is_sent_to_the_network(nephila, tmp_path, monkeypatch):
    """Only localhost is looked up, and nothing is connected."""
    asked = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: asked.append(host) or [])
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("connected"))
    assert nephila("doctor").code == 0
    assert asked == ["localhost"]


def test_the_fallback_is_named_with_its_remedy(monkeypatch):
    """Slow, its main text simpler, and how to get the Rust core."""
    monkeypatch.setattr(nephila.native, "IMPLEMENTATION", "python")
    monkeypatch.delenv("NEPHILA_NATIVE", raising=False)
    (check,) = doctor.check_native()
    assert check.state == "warn"
    assert "slow, and its main text is simpler" in check.found
    assert "install Rust" in check.remedy
    monkeypatch.setenv("NEPHILA_NATIVE", "python")
    assert "unset" in doctor.check_native()[0].remedy


def test_a_low_limit_of_open_files_is_a_warning():
    """The hard limit counts, as the crawler lifts the soft one itself."""
    assert doctor.check_open_files((256, 1024))[0].state == "warn"
    assert "ulimit -n 4096" in doctor.check_open_files((256, 1024))[0].remedy
    assert doctor.check_open_files((256, 4096))[0].state == "ok"
    assert doctor.check_open_files((-1, -1))[0].state == "ok"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_fails(nephila, tmp_path, monkeypatch):
    """Exit code 1 with the reason."""
    here = tmp_path / "closed"
    here.mkdir()
    monkeypatch.chdir(here)
    here.chmod(0o500)
    ran = nephila("doctor")
    assert ran.code == 1
    assert "cannot crawl yet: directory" in ran.out


def test_a_failed_check_is_exit_code_1(nephila, monkeypatch):
    """Whatever fails is named at the end."""
    monkeypatch.setattr(doctor, "CHECKS", (lambda: [doctor.Check("python", "fail", "3.9", "install 3.11")],))
    ran = nephila("doctor")
    assert ran.code == 1
    assert ran.out.startswith(
        "fail  python  3.9\n              → install 3.11\nThis machine cannot crawl yet: python.\n"
    )


def lacking(monkeypatch, *names):
    """Have these libraries not be there."""
    there = metadata.version

    def version(name: str) -> str:
        if name in names:
            raise metadata.PackageNotFoundError(name)
        return there(name)

    monkeypatch.setattr(metadata, "version", version)


def test_a_missing_library_says_what_it_is_for(monkeypatch):
    """One that makes it faster: a warning; one that crawling needs: a failure."""
    lacking(monkeypatch, "isal")
    checks = {check.name: check for check in doctor.check_libraries()}
    assert (checks["libraries"].state, checks["isal"].state) == ("ok", "warn")
    assert "gzip" in checks["isal"].found
    lacking(monkeypatch, "aiohttp")
    (check, *_) = doctor.check_libraries()
    assert (check.state, check.found) == ("fail", "not installed: aiohttp")


def test_what_a_command_needs_is_named_with_its_extra(nephila, monkeypatch):
    """command | needs | found | remedy."""
    lacking(monkeypatch, "pyarrow", "aiokafka")
    rows = {row["command"]: row for row in json.loads(nephila("doctor", "--json").out)["commands"]}
    assert rows["crawl, up, export --format parquet"] == {
        "command": "crawl, up, export --format parquet",
        "needs": ["pyarrow"],
        "found": "not installed: pyarrow",
        "remedy": install_line("parquet"),
    }
    assert rows["crawl, up, storage --store postgresql://…"]["remedy"] == ""
    out = nephila("doctor").out
    assert "not installed: aiokafka" in out
    assert install_line("kafka") in out


def test_every_extra_that_is_named_is_one():
    """In doctor's table and in the line about a missing library."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(EXTRAS.values()) | {extra for _, _, extra in doctor.COMMANDS} <= set(extras)
    for _, needs, extra in doctor.COMMANDS:
        assert set(needs) <= libraries_of(extras, extra)
    base = {re.match(r"[\w.-]+", line)[0] for line in project["dependencies"]}
    assert set(doctor.FASTER) <= base | libraries_of(extras, "codings")


def libraries_of(extras, name):
    """Libraries of an extra, with those of the extras that it names."""
    found = set()
    for line in extras[name]:
        own = re.match(r"nephila\[([\w,-]+)\]", line)
        found |= (
            set().union(*(libraries_of(extras, part) for part in own[1].split(",")))
            if own
            else {re.match(r"[\w.-]+", line)[0]}
        )
    return found


def test_a_resolver_without_server_is_a_warning(tmp_path):
    """Seen without asking anyone."""
    conf = tmp_path / "resolv.conf"
    conf.write_text("# none\nsearch x\n")
    assert doctor.check_names(conf)[0].state == "warn"
    conf.write_text("nameserver 192.0.2.1\n")
    assert "192.0.2.1" in doctor.check_names(conf)[0].found
    assert doctor.check_names(tmp_path / "none")[0].state == "ok"


def test_a_clock_before_the_installation_is_a_warning():
    """It is wrong, or the file is."""
    assert doctor.check_clock(now=0.0, installed_at=1e9)[0].state == "warn"
    assert doctor.check_clock(now=1e9, installed_at=1e9)[0].state == "ok"


def test_middleware_files_are_named_with_their_functions(nephila, tmp_path, monkeypatch):
    """A file that cannot be loaded makes the machine unusable, with path and line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mw").mkdir()
    (tmp_path / "mw" / "one.py").write_text("def on_request(request):\n    pass\n")
    ran = nephila("doctor", "--middleware", "mw")
    assert ran.code == 0
    assert f"{tmp_path}/mw/one.py: on_request" in ran.out
    (tmp_path / "mw" / "two.py").write_text("def on_request(:\n")
    ran = nephila("doctor", "--middleware", "mw")
    assert ran.code == 1
    assert "mw/two.py:1: " in ran.out
