"""Main text by the library trafilatura, for jobs that ask for it. It builds trees of untrusted pages, so it runs in a
child process.

`TRAFILATURA` is the task for the sandbox, `run` the function in the child. The library is an optional dependency:
without it the task is not started. Invariant: the parser's own process never imports it.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any, Final

import msgspec

from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.runtime.extras import install_line
from nephila.native import spelled
from nephila.parser.sandbox import Task

LIBRARY: Final = "trafilatura"
MISSING: Final = f"mainText: trafilatura needs the library of that name: {install_line('trafilatura')}"


class TextRequest(msgspec.Struct, array_like=True):
    """One page, as UTF-8."""

    source: bytes
    url: str
    max_text_bytes: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TextRequest).decode


def is_installed() -> bool:
    """Whether the library is installed, without importing it."""
    return importlib.util.find_spec(LIBRARY) is not None


def lacks_library(job: JobSpec) -> bool:
    """Whether a job needs the library and it is not installed."""
    return job.parse.main_text == LIBRARY and not is_installed()


def payload_of(source: bytes, url: str, max_text_bytes: int) -> bytes:
    """The page of the payload is UTF-8."""
    return _encode(TextRequest(source, url, max_text_bytes))


def run(payload: bytes) -> bytes:
    """Entry point of the child, see `Task.module`."""
    request = _decode(payload)
    text = _library()(request.source.decode("utf-8", "replace"), url=request.url) or ""
    return str(text).encode("utf-8", "replace")[: request.max_text_bytes]


def decode_result(data: bytes) -> bytes:
    """Decode the result of a child, without a character that the limit has cut."""
    return spelled(data.decode("utf-8", "ignore").encode())


@cache
def _library() -> Any:
    from trafilatura import extract

    return extract


def preload() -> None:
    """Import the library and use it once, so that it loads all its data before the lock-down."""
    words = (
        "Golden spiders spin their webs between old trees near the slow river, and nobody knows why they do it. " * 9
    )
    for page in (
        f"<article><h1>Silk</h1><p>{words}</p><p>{words}</p></article>",
        f"<div>{words}</div>",
        "<p>short</p>",
    ):
        _library()(f"<html lang=en><head><title>Silk</title></head><body>{page}</body></html>", url="http://a.test/x")


TRAFILATURA: Final[Task[bytes]] = Task(
    "trafilatura",
    "nephila.parser.page.trafilatura_child",
    decode_result,
    wall_s=10.0,
    memory_bytes=768 << 20,
    max_result_bytes=20 << 20,
)
