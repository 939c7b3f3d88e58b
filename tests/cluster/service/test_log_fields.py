"""Logs: one JSON object per line with the fields of its subject; hostile text cannot start a line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from nephila.kernel import messages as m
from nephila_cluster.service.logs import about, configure


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which is as before afterwards."""
    found = logging.getLogger()
    handlers, level = found.handlers[:], found.level
    yield found
    found.handlers[:] = handlers
    found.setLevel(level)


def test_a_line_is_one_object_with_its_fields(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    """Level, time, service and member; those of `about`; the traceback inside; nothing below the level."""
    configure("parser", "parser-1", "warning")
    log = logging.getLogger("nephila.test")
    log.info("not shown")
    try:
        raise ValueError("broken\nbody")
    except ValueError:
        log.exception(
            "page %s", 'a\n{"level": "forged"}', extra=about(m.FetchRequest(job="j\n", url="http://a/\u2028"))
        )
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert line.isascii()
    assert {name: found[name] for name in ("level", "service", "member", "job", "url", "message")} == {
        "level": "error",
        "service": "parser",
        "member": "parser-1",
        "job": "j\n",
        "url": "http://a/\u2028",
        "message": 'page a\n{"level": "forged"}',
    }
    assert found["timestamp"].endswith("Z")
    assert "ValueError: broken" in found["exception"]


def test_about_has_what_a_person_searches_for() -> None:
    """Fields that a message does not have, and empty ones, are left out; a partition of 0 is one."""
    request = SimpleNamespace(job="j", url="", host="a.test", url_key=b"\x01\xff", fetch_no=3, attempt=2)
    assert about(request, 0) == {"partition": 0, "job": "j", "host": "a.test", "fetch_id": "01ff-3-2"}
    assert about(SimpleNamespace(url_key=b"\x02")) == {"fetch_id": "02-0-0"}
    assert about(object()) == {}
