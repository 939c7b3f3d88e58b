"""Answers of other programs for bench_quality.py: runs in an environment of their own, without this project.

    python quality_rivals.py NAME < pages > answers

A line of input is a JSON list: id, body in base64. A line of output: id, text, CPU-seconds. A program that fails on a
page has an empty answer.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Callable

Run = Callable[[bytes], str]


def _trafilatura() -> Run:
    from trafilatura import extract

    return lambda body: extract(body) or ""


def _resiliparse() -> Run:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import detect_encoding
    from resiliparse.parse.html import HTMLTree

    def run(body: bytes) -> str:
        tree = HTMLTree.parse_from_bytes(body, detect_encoding(body))
        return str(extract_plain_text(tree, main_content=True) or "")

    return run


def _readability() -> Run:
    from lxml.html import fromstring
    from readability import Document

    return lambda body: str(fromstring(Document(body).summary()).text_content())


def _html_text() -> Run:
    from html_text import extract_text
    from resiliparse.parse.encoding import detect_encoding

    return lambda body: str(extract_text(body.decode(detect_encoding(body), "replace")))


RIVALS: dict[str, Callable[[], Run]] = {
    "trafilatura": _trafilatura,
    "resiliparse": _resiliparse,
    "readability-lxml": _readability,
    "html-text": _html_text,
}


def main() -> None:
    """Answer each page of the input."""
    run = RIVALS[sys.argv[1]]()
    for line in sys.stdin:
        page, body = json.loads(line)
        start = time.process_time()
        try:
            text = run(base64.b64decode(body))
        except Exception as error:
            print(f"{page}: {error!r}", file=sys.stderr)
            text = ""
        print(json.dumps([page, text, time.process_time() - start]))


if __name__ == "__main__":
    main()
