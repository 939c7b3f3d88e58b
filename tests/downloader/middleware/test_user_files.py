"""Middleware of the user: files that are loaded, called, refused, and that fail."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from nephila.downloader.metrics import METRICS
from nephila.downloader.middleware.user.user_files import UserMiddleware, load_files
from nephila.kernel.messages import FetchResult
from nephila.kernel.process.call_time_limit import CallTimeout, TimeLimit
from nephila.kernel.process.process_setup import run_loop
from nephila.kernel.runtime.errors import UsageError
from nephila.testing import load_middleware

from tests.downloader.downloader_room import Room, answer

ALL = """
from pathlib import Path
LOG = Path(__file__).with_suffix(".log")
def on_request(request):
    request.set_header("X-Depth", f"{request.depth} {request.host}")
def on_response(request, response):
    response.body = response.body.replace(b"old", b"new")
def on_outcome(request, outcome):
    with LOG.open("a") as file:
        file.write(f"{request.url} {outcome.result} {outcome.status}\\n")
"""


async def room_with(folder: Path, **files: str) -> Room:
    """A downloader with these files."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    room = Room(middleware__directory=str(folder))
    await room.downloader.start()
    return room


async def fetch(room: Room, url: str = "http://a.test/x") -> None:
    """One request, answered with a page."""
    room.request(url)
    await room.settle()
    if room.fetcher.fetches:
        room.reply(-1, answer(200, b"<p>old text", content_type="text/html"))
        await room.settle()


async def test_the_three_functions_are_called(tmp_path: Path) -> None:
    """A header on the request, another body of the page, a line per outcome."""
    room = await room_with(tmp_path, all=ALL)
    await fetch(room)
    assert room.fetcher.fetches[0].request.own_headers() == {"X-Depth": "0 a.test"}
    assert room.pages[0].body == b"<p>new text"
    assert (tmp_path / "all.log").read_text() == "http://a.test/x fetched 200\n"


async def test_files_run_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Responses in reverse; files that begin with _ or test_ are left out."""
    add = "def on_response(request, response):\n    response.body += b'%s'\n"
    room = await room_with(tmp_path, b=add % "b", a=add % "a", _c="1/0", test_d="1/0")
    await fetch(room)
    assert room.pages[0].body == b"<p>old textba"


@pytest.mark.parametrize("hook", ["on_request(request)", "on_response(request, response)"])
async def test_an_exception_costs_the_fetch(tmp_path: Path, hook: str, caplog: pytest.LogCaptureFixture) -> None:
    """failed(middleware), a metric, a log line with file and line; the next fetch goes through."""
    text = f"def {hook}:\n    if request.url.endswith('/bad'):\n        raise KeyError('why')\n"
    room = await room_with(tmp_path, one=text)
    with caplog.at_level(logging.ERROR):
        await fetch(room, "http://a.test/bad")
    await fetch(room, "http://a.test/good")
    assert [(one.result, one.reason) for one in room.outcomes] == [
        (FetchResult.FAILED, "middleware"),
        (FetchResult.FETCHED, ""),
    ]
    assert "one.py:3: KeyError" in room.outcomes[0].detail
    assert f"{tmp_path}/one.py:3: KeyError: 'why' in: raise KeyError('why')" in caplog.text
    values = {metric.name: metric.read(room.downloader) for metric in METRICS}
    assert values["middleware_failures_total"] == {"one.py": 1}


async def test_an_unexpected_exception_before_the_dial_frees_the_slots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next request of the host is fetched."""
    room = await room_with(tmp_path, one=ALL)
    with monkeypatch.context() as patch:
        patch.setattr(room.downloader.chain, "on_request", lambda request, http_request: 1 / 0)
        await fetch(room, "http://a.test/bad")
    await fetch(room, "http://a.test/good")
    assert [one.reason for one in room.outcomes] == ["internal", ""]


async def test_an_exception_after_the_outcome_changes_nothing(tmp_path: Path) -> None:
    """It is counted and logged."""
    room = await room_with(tmp_path, one="def on_outcome(request, outcome):\n    1/0\n")
    await fetch(room)
    assert len(room.pages) == 1
    assert room.outcomes[0].result is FetchResult.FETCHED
    assert room.downloader.chain.find(UserMiddleware).failures == {"one.py": 1}


LOOPS = {
    "a loop": "while True: pass",
    "a loop that swallows exceptions": """while True:
            try:
                1 / 0
            except Exception:
                pass""",
    "a wait": "import time; time.sleep(60)",
    "a pattern that backtracks": "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
async def test_an_endless_call_costs_the_fetch(tmp_path: Path, loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the limit: failed(middleware) with file and line; the next fetch goes through."""
    monkeypatch.setattr("nephila.downloader.middleware.user.user_files.CALL_S", 0.1)
    start = "def on_response(request, response):\n    if request.url.endswith('/bad'):\n        "
    text = f"{start}{loop}\n"
    room = await room_with(tmp_path, one=text)
    await fetch(room, "http://a.test/bad")
    await fetch(room, "http://a.test/good")
    assert [one.reason for one in room.outcomes] == ["middleware", ""]
    assert "one.py:" in room.outcomes[0].detail
    assert "CallTimeout: longer than 0.1 s" in room.outcomes[0].detail


def test_an_endless_call_on_the_event_loop_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop that crawls run on delivers the signal within a callback."""
    monkeypatch.setattr("nephila.downloader.middleware.user.user_files.CALL_S", 0.1)
    (tmp_path / "one.py").write_text("def on_outcome(request, outcome):\n    while True: pass\n")
    (file,) = load_files(str(tmp_path))

    async def call() -> str:
        done = asyncio.get_running_loop().create_future()

        def endless() -> None:
            try:
                TimeLimit(0.1).call(file.hooks["on_outcome"], None, None)
            except CallTimeout as error:
                done.set_result(str(error))

        asyncio.get_running_loop().call_soon(endless)
        return await done

    assert run_loop(call()) == "longer than 0.1 s"


def test_a_file_that_never_ends_to_load_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, with its line."""
    monkeypatch.setattr("nephila.downloader.middleware.user.user_files.LOAD_S", 0.1)
    (tmp_path / "one.py").write_text("x = 1\nwhile x:\n    x = 1\n")
    with pytest.raises(UsageError, match=r"one\.py:[23]: CallTimeout: longer than 0\.1 s"):
        load_files(str(tmp_path))


@pytest.mark.parametrize("line", ["raise SystemExit(3)", "response.fail(404)"])
async def test_a_wrong_call_costs_the_fetch(tmp_path: Path, line: str) -> None:
    """The process continues."""
    room = await room_with(tmp_path, one=f"def on_response(request, response):\n    {line}\n")
    await fetch(room)
    assert not room.pages
    assert room.outcomes[0].reason == "middleware"
    assert "one.py:2" in room.outcomes[0].detail


@pytest.mark.parametrize(("blocked", "reason"), [("False", "middleware"), ("True", "blocked")])
async def test_a_response_can_be_failed(tmp_path: Path, blocked: str, reason: str) -> None:
    """No page is published."""
    text = f"def on_response(request, response):\n    response.fail('no', blocked={blocked})\n"
    room = await room_with(tmp_path, one=text)
    await fetch(room)
    assert not room.pages
    assert (room.outcomes[0].reason, room.outcomes[0].detail) == (reason, "no")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("x = 1\ndef on_request(request:\n    pass\n", 2, "was never closed"),
        ("x = 1\n\nimport no_such_module_here\n", 3, "ModuleNotFoundError"),
        ("raise SystemExit(3)\n", 1, "SystemExit"),
        ("x = 1\n", 1, "none of the functions"),
        ("\nasync def on_request(request):\n    pass\n", 2, "no plain function"),
        ("def on_response(request):\n    pass\n", 1, "1 parameters, expected 2"),
        ("on_request = 5\n", 1, "no plain function"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named_with_its_line(tmp_path: Path, text: str, line: int, why: str) -> None:
    """At the start, before anything is fetched."""
    (tmp_path / "one.py").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_files(str(tmp_path))
    assert str(caught.value).startswith(f"{tmp_path}/one.py:{line}: ")
    assert why in str(caught.value)


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(UsageError, match="does not exist"):
        load_files(str(tmp_path / "no"))


@pytest.mark.parametrize(
    ("name", "value"), [("X-A", "b\r\nY: z"), ("X A", "b"), ("Host", "b"), ("Content-Length", "3"), ("X-A", "ü")]
)
def test_headers_that_cannot_be_sent(tmp_path: Path, name: str, value: str) -> None:
    """A header of a file cannot smuggle another one, or change the framing."""
    (tmp_path / "one.py").write_text(f"def on_request(request):\n    request.set_header({name!r}, {value!r})\n")
    with pytest.raises(ValueError, match=r"header"):
        load_middleware(tmp_path / "one.py").on_request("http://a.test/")


def test_the_test_helper_calls_the_functions(tmp_path: Path) -> None:
    """As the downloader does, without a network."""
    (tmp_path / "all.py").write_text(ALL)
    file = load_middleware(tmp_path / "all.py")
    assert file.on_request("http://a.test/x", depth=3) == {"X-Depth": "3 a.test"}
    assert file.on_response("http://a.test/x", body=b"old").body == b"new"
    file.on_outcome("http://a.test/x", "failed", reason="timeout", status=0)
    assert (tmp_path / "all.log").read_text() == "http://a.test/x failed 0\n"
