"""Rules in a child process: XPath, scripts, Python functions, and any rule on a page that is too large or too deep for
the loop.

`RULES` is the task for the sandbox, `run` the function in the child. A page is sent as UTF-8, since a locked-down child
cannot load codecs. Invariant: the result equals that of `extract` in this process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import jmespath
import jmespath.exceptions  # noqa: F401
import msgspec
from lxml import etree  # noqa: F401
from nephila.parser.sandbox import Task
from selectolax.lexbor import LexborHTMLParser

from nephila_rules.runtime import functions, jsonpath, scripts  # noqa: F401
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.extract import Extraction, extract
from nephila_rules.runtime.functions import prepare  # noqa: F401 - see `Task.arguments`
from nephila_rules.runtime.load import from_text
from nephila_rules.runtime.match import holds
from nephila_rules.runtime.select import OFF, Script, xml_values
from nephila_rules.runtime.spec import Rule

WALL_S: Final = 10.0
MEMORY_BYTES: Final = 768 << 20
MAX_PRIORITY: Final = 255
MAX_LINK_DEPTH: Final = 1000


class RuleRequest(msgspec.Struct, array_like=True):
    """A page and the rules that match its URL, in order of priority, as `RuleDocument.text`."""

    rules: list[str]
    source: bytes
    url: str
    content_type: str
    facts: dict[str, str]
    scripts: bool = False
    chosen: bool = False
    """Use the first rule without checking its conditions on content."""
    names: list[str] = []
    """Name of each rule: its own, or `rule/part` for a second page."""
    routes: bool = False
    """Routes of links are part of their URLs."""


class RuleAnswer(msgspec.Struct, array_like=True):
    """Index of the matching rule and its extraction; -1 if the page meets no rule's conditions."""

    number: int
    found: Extraction


decode_request = msgspec.msgpack.Decoder(RuleRequest).decode
"""Reads a payload."""
_encode = msgspec.msgpack.Encoder().encode
_decode_answer = msgspec.msgpack.Decoder(RuleAnswer).decode
_decode_item = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def decode_result(data: bytes) -> RuleAnswer:
    """Read what a child sent. Raises `ValueError` or `msgspec.MsgspecError` when it is not of the form."""
    answer = _decode_answer(data)
    extraction = answer.found
    for item in extraction.items:
        _decode_item(item)
    for link in (*(extraction.links or ()), *extraction.next_pages, *extraction.second_pages):
        if not (0 <= link.priority <= MAX_PRIORITY and 0 <= link.depth <= MAX_LINK_DEPTH):
            raise ValueError("a link with hints that no rule gives")
    return answer


RULES: Final[Task[RuleAnswer]] = Task(
    "rules",
    __name__,
    decode_result,
    wall_s=WALL_S,
    memory_bytes=MEMORY_BYTES,
    max_result_bytes=32 << 20,
)
ISOLATED_RULES: Final[Task[RuleAnswer]] = replace(RULES, name="rules in doubt")
"""The same in a child of their own, for rules that made a child fail: twenty seconds per page would delay the
others."""


def run(payload: bytes) -> bytes:
    request = decode_request(payload)
    document = Document(
        request.source, request.url, "utf-8", request.content_type, request.facts, routes=request.routes
    )
    for number, (text, name) in enumerate(zip(request.rules, request.names, strict=True)):
        rule = _rule(text, name)
        if request.chosen or holds(rule, document):
            return _encode(RuleAnswer(number, extract(rule, document, _script(request, rule, document))))
    return _encode(RuleAnswer(-1, Extraction()))


def _script(request: RuleRequest, rule: Rule, document: Document) -> Script | None:
    """The call of the rule's functions; None if it has none that may be called."""
    javascript = scripts.PageScripts(document) if request.scripts and rule.scripts else None
    python = functions.functions_of(document) if rule.functions else None
    if javascript is None and python is None:
        return None

    def call(language: str, source: str, value: Any) -> Any:
        calls = javascript if language == "js" else python
        if calls is None:
            raise ValueError(OFF[language])
        return calls.call(source, value)

    return call


@lru_cache(maxsize=1000)
def _rule(text: str, name: str) -> Rule:
    return next(rule for rule in from_text(text).rule.page_rules if rule.name == name)


def request_of(rules: Mapping[str, str], document: Document, *, scripts: bool, chosen: bool = False) -> bytes:
    """The payload for a page; `rules`: name → `RuleDocument.text`."""
    # Both trees of the child begin with the same text; lone surrogates are gone from it.
    return _encode(
        RuleRequest(
            list(rules.values()),
            document.source.encode("utf-8", "replace"),
            document.url,
            document.content_type,
            document.facts,
            scripts,
            chosen,
            list(rules),
            document.routes,
        )
    )


def preload() -> Any:
    """Load all that is loaded on first use, before the lock-down."""
    import encodings.idna
    import encodings.utf_8
    import encodings.utf_16_le  # noqa: F401

    from nephila_rules.runtime.selectors import compiled

    with contextlib.suppress(ModuleNotFoundError):
        import quickjs

        quickjs.Context().eval("1")
    document = Document("<p id=a>\ud83d\ude00é 1 May 2026 10:00</p>".encode("utf-8", "surrogatepass"), "http://a.test/")
    compiled("css", "p")
    compiled("xpath", "//p")(document.etree)
    xml = Document(b"<?xml version='1.0'?><a xmlns='urn:a'><b>&eacute;<p/></b></a>", content_type="text/xml")
    xml_values("css", "b", xml, None)[0].text()
    compiled("regex", "a")
    compiled("jsonpath", "$..a[?match(@, 'a')]")
    return LexborHTMLParser("<p>").css("p")


preload()
