"""Seeds as people write them: one URL as typed, or a file of URLs, one a line.

A bare host name becomes an http URL. Errors are `UsageError`s of one line that name the value and what to write
instead.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.messages import Outlinks
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.native import UrlError, seed_links

STDIN = "-"
MAX_URL = 8192
"""Characters of a seed as typed and of its href, the same limit as for a link on a page."""
_FILE_ENDINGS = late_pattern(r"^[^/]*\.(txt|csv|tsv|json|jsonl|ndjson|html?|xml|pdf|lst|list|gz)$", re.IGNORECASE)
"""Names with these ends are files: no top-level domain is called so."""
MAX_LINE = 1 << 24
"""Bytes of one line of a seed file. A file without line ends is not a list of URLs."""
_SCHEME = late_pattern(
    r"([a-z][a-z0-9+-]*):(?!\d)(?!(?<!mailto:)(?<!javascript:)(?<!data:)[^/]*@[^/]*)/{0,2}", re.IGNORECASE
)
"""A scheme in front of what is no port, and no password with a host behind it."""
_PIECE = 1 << 18
"""Bytes read at a time; a pipe delivers less."""


def is_job_file(text: str) -> bool:
    """Whether an argument is the name of a job file and not a URL."""
    return (text.endswith((".yaml", ".yml")) and "://" not in text) or (text.endswith(".json") and os.path.isfile(text))


@contextmanager
def url_errors(url: str, place: str = "") -> Iterator[None]:
    """A `UrlError` of the block becomes a `UsageError` of one line; `place` is the text before the URL in it."""
    try:
        yield
    except UrlError as error:
        raise UsageError(f"{place}{url[:100]!a} is not a URL that can be crawled: {error}") from None


def seed_url(text: str, *, files: bool = True) -> str:
    """The absolute URL of a seed as typed. A bare host name gets http://, which servers redirect to https. `files`: the
    person is at this machine, and may mean a file or a directory of it.

    Raises `UsageError` that names what is wrong.
    """
    url = text.strip()
    if len(url) > MAX_URL:
        raise _too_long(url)
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", url):
        if files:
            _check_no_file(url)
        _check_no_scheme(url)
        if not re.match(r"(localhost|\[.*\]|[^/]*[.:][^/]*)(/|$)", url):
            name = url if re.fullmatch(r"[\w-]+", url) else "example"
            raise UsageError(f"{text!r} is not a URL; did you mean http://{name}/ or http://{name}.com/?")
        url = "http://" + url
    try:
        href = parse_routed(url).href
    except UrlError as error:
        raise UsageError(f"{text!r} is not a URL that can be crawled: {error}") from None
    if len(href) > MAX_URL:
        raise _too_long(url)
    return href


def _too_long(url: str) -> UsageError:
    return UsageError(f"{url[:60]!r}… is not a URL that can be crawled: longer than {MAX_URL:,} characters")


def _check_no_scheme(text: str) -> None:
    """Raise `UsageError` for quotation marks and for a scheme that would be read as a host."""
    if text[:1] in ('"', "'"):
        raise UsageError(f"{text!r} is not a URL; give it without quotation marks")
    match = _SCHEME.match(text)
    if match is None:
        return
    scheme = match[1].lower()
    if scheme in ("http", "https"):
        raise UsageError(f"{text!r} is not a URL; did you mean {scheme}://{text[match.end() :]}?")
    raise UsageError(f"{text!r} is not a URL that can be crawled: unsupported scheme {scheme!r}")


def _check_no_file(text: str) -> None:
    """Raise `UsageError` where a person means a file or a directory, not a host."""
    name = shlex.quote(text)
    if os.path.isfile(text):  # unlike Path.is_file, no error for text that cannot be a file name
        raise UsageError(
            f"{text} is a file: read it with `nephila extract {name}`, or take its URLs with --seeds {name}"
        )
    if text == STDIN:
        raise UsageError("- is no URL: URLs come from standard input with --seeds -")
    if "." in text.strip("./") and not text.startswith(("./", "../", "/", "~")) and not _FILE_ENDINGS.search(text):
        return  # a host may be called as the directory that its crawl has
    if os.path.isfile(os.path.join(text, "run.json")):
        raise UsageError(f"{text} is the directory of a crawl: continue it with `nephila crawl --resume --out {name}`")
    if os.path.isdir(text):
        raise UsageError(f"{text} is a directory, not a URL; a list of URLs is given by --seeds FILE")
    if text.startswith(("./", "../", "/", "~")) or _FILE_ENDINGS.search(text):
        raise UsageError(f"{text[:100]!r} is neither a URL nor a file that exists")


def read_seeds(name: str, on_bad_line: Callable[[str, str], None], option: str = "--seeds ") -> Iterator[str]:
    """The URLs that `read_seed_links` reads, one by one."""
    for links in read_seed_links(name, on_bad_line, option):
        yield from [links] if isinstance(links, str) else link_urls(links)


def link_urls(links: Outlinks) -> Iterator[str]:
    """The URLs of packed links."""
    start = 0
    for end in memoryview(links.url_ends).cast("I"):
        yield links.urls[start:end].decode()
        start = end


def read_seed_links(
    name: str, on_bad_line: Callable[[str, str], None], option: str = "--seeds "
) -> Iterator[Outlinks | str]:
    """URLs of a seed file, one a line, read lazily: packed, or as text where a URL cannot be packed. Of some thousand
    lines, those that are plain URLs come first. Empty lines and lines that begin with # are skipped.

    `on_bad_line` gets the position and the reason of each line that is not a URL; the other lines are still read.
    Raises `UsageError` when the file cannot be read or holds no URL; `option` is the text before the name in errors.
    """
    if is_job_file(name):
        raise UsageError(f"{option}{name} is no list of URLs; a job is an argument: nephila crawl {shlex.quote(name)}")
    source = "standard input" if name == STDIN else name
    good = bad = number = 0
    try:
        # Not sys.stdin: a thread that waits for a line would block the interpreter when it closes sys.stdin at exit.
        with open(0, "rb", closefd=False) if name == STDIN else Path(name).open("rb") as file:
            for lines in _whole_lines(file):
                if len(lines) >= MAX_LINE and lines.find(b"\n") < 0:
                    raise UsageError(f"{option}{name}: line {number + 1} is longer than 16 MB; give one URL a line")
                for links, count, odd in _packed(lines):
                    typed: list[str] = []
                    for at, line in odd:
                        try:
                            typed.append(seed_url(line.strip().removeprefix(b"\xef\xbb\xbf").decode()))
                        except (UsageError, UnicodeDecodeError) as error:
                            bad += 1
                            reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
                            on_bad_line(f"{source}, line {number + at + 1}", reason)
                    number += count
                    if links is not None:
                        yield links
                        good += 1
                    if typed:
                        yield from _in_links(typed)
                        good += 1
    except OSError as error:
        raise UsageError(f"cannot read {option}{name}: {error.strerror}") from None
    if not good:
        what = f"none of its {bad} lines is a URL" if bad else "it is empty"
        raise UsageError(f"{option}{name}: {what}; give one URL a line")


def _packed(lines: bytes) -> Iterator[tuple[Outlinks | None, int, list[tuple[int, bytes]]]]:
    """Up to a thousand lines that are plain URLs as packed links, how many lines that are, and those among them that
    are no plain URLs, each with its number from 0."""
    at = 0
    while at < len(lines):
        keys, urls, ends, spans, count, at, odd = seed_links(lines, at)
        links = Outlinks("", b"", "", 0, keys, urls, ends, spans) if keys else None
        yield links, count, [(number, lines[start:end]) for number, start, end in odd]


def _in_links(typed: list[str]) -> Iterator[Outlinks | str]:
    """URLs that were typed in another form, as packed as they can be."""
    for links, _, odd in _packed("\n".join(typed).encode()):
        if links is not None:
            yield links
        yield from (line.decode().strip() for _, line in odd)


def _whole_lines(file: BufferedReader) -> Iterator[bytes]:
    """What the file delivers, in pieces of whole lines; a piece of `MAX_LINE` bytes without a line end is the last."""
    open_line = bytearray()
    while (piece := file.read1(_PIECE)) and len(open_line) < MAX_LINE:
        end = piece.rfind(b"\n") + 1
        if end:
            yield bytes(open_line) + piece[:end]
            open_line.clear()
        open_line += piece[end:]
    if open_line:
        yield bytes(open_line)
