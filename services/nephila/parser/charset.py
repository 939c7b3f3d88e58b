"""The encoding of a document: what it declares (native sniff), else what its bytes look like.

Order: markup with a zero beside each letter (UTF-16 without its mark), then byte order mark, Content-Type, <meta>,
valid UTF-8 - all in the native sniff, by WHATWG's rules - then an XML declaration, then the look of a bounded sample
of the non-ASCII text (double-byte by structure, single-byte by charset-normalizer), then windows-1252. Invariant: the
answer is a WHATWG name that webencodings knows, and no body costs more than a few milliseconds, whatever is in it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Final

import webencodings

from nephila.parser.cjk import double_byte

Sniff = Callable[[bytes, str | None], str]

DEFAULT: Final = "windows-1252"
SCAN_BYTES: Final = 256 * 1024
"""Bytes of a body that are looked at; a page whose first non-ASCII letter comes later is as good as ASCII."""
WINDOW_BYTES: Final = 32 * 1024
"""Bytes from the first non-ASCII one on that the sample is taken from."""
SAMPLE_BYTES: Final = 8 * 1024
"""Bytes given to the detector; its time grows with them, its verdict hardly."""
MIN_HIGH_BYTES: Final = 6
"""Fewer non-ASCII bytes than this are a lone currency sign or accent, of which a detector makes anything."""

# The single-byte codecs the detector may answer and WHATWG's name for each. Restricting it to the web's legacy ones is
# most of the guard on its time: it tries every codec of Python otherwise. Double-byte text is told before (cjk.py).
_CANDIDATES: Final = {
    "cp1251": "windows-1251",
    "koi8_r": "koi8-r",
    "cp1252": "windows-1252",
    "cp1250": "windows-1250",
    "cp1253": "windows-1253",
    "cp1254": "windows-1254",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "cp1257": "windows-1257",
    "cp874": "windows-874",
}
_NAMES: Final = list(_CANDIDATES)
_LATIN_OF: Final = {
    **dict.fromkeys(("cs", "hr", "hu", "pl", "ro", "sk", "sl", "sq"), "windows-1250"),
    **dict.fromkeys(("az", "tr"), "windows-1254"),
    **dict.fromkeys(("et", "lt", "lv"), "windows-1257"),
}
_LATIN: Final = frozenset((DEFAULT, *_LATIN_OF.values()))
# What Polish, Hungarian or Baltic letters turn into when read as windows-1252; Western text never has it.
_SYMBOL_IN_WORD: Final = re.compile("(?<=[A-Za-zÀ-ÿ])[\u00a1-\u00bf](?=[A-Za-zÀ-ÿ])")
_LANG: Final = re.compile(rb"""<html[^>]{0,500}?\slang\s*=\s*["']?([a-z]{2})\b""", re.IGNORECASE)

_THAI_MARK: Final = re.compile(rb"[\xd1\xd4-\xda\xe7-\xee]")
_NO_THAI: Final = re.compile(
    rb"(?<![\xa1-\xce\xd1\xd4-\xda\xe7-\xee])[\xd1\xd4-\xda\xe7-\xee]|[\x86-\x90\x98-\x9f\xdb-\xde\xfc-\xff]"
)
_HIGH: Final = re.compile(rb"[\x80-\xff]")
_TAG: Final = re.compile(rb"<[^<>]*>")
_ASCII: Final = bytes(range(0x80))
_ISO_2022_JP: Final = (b"\x1b$B", b"\x1b$@", b"\x1b(J")


def encoding_of(body: bytes, charset: str, sniff: Sniff) -> str:
    """WHATWG name, lower case, of the encoding of an HTML body; `charset` is the header's, "" when there is none."""
    return _by_zeros(body) or sniff(body, charset or None) or _xml_declared(body) or detect(body)


def encoding_of_text(body: bytes, charset: str, content_type: str) -> str:
    """The same for a body that is not HTML: no <meta> counts, XML may declare itself, JSON is UTF-8 (RFC 8259). XML
    that is not the UTF-8 that it has to be goes by its look."""
    mark = _by_mark(body) or _by_zeros(body)
    if mark:
        return mark
    if charset:
        named = webencodings.lookup(charset)
        if named is not None:
            return str(named.name)
    if content_type.endswith("json"):
        return "utf-8"
    if content_type.endswith("xml") or body.startswith(b"<?xml"):
        declared = _xml_declared(body) or "utf-8"
        return declared if declared != "utf-8" or _is_utf8(body[:SCAN_BYTES]) else detect(body)
    return "utf-8" if body.isascii() else detect(body)


def detect(body: bytes) -> str:
    """The encoding of undeclared bytes by their look; windows-1252 when nothing speaks for another."""
    scanned = body[:SCAN_BYTES]
    if scanned.isascii():
        return "iso-2022-jp" if any(mark in scanned for mark in _ISO_2022_JP) else DEFAULT
    if _is_utf8(scanned):
        return "utf-8"
    sample = _sample(scanned)
    if len(sample.translate(None, _ASCII)) < MIN_HIGH_BYTES:
        return DEFAULT
    if _is_thai(sample):
        return "windows-874"
    return double_byte(sample) or _single_byte(sample, _language(scanned))


def _is_thai(sample: bytes) -> bool:
    """Vowels and tones above and below the line, which Thai has in every word, stand behind a letter and nowhere else,
    and some bytes are nothing in Thai; in double-byte text these stand anywhere."""
    marks = len(_THAI_MARK.findall(sample))
    return marks * 10 >= len(sample.translate(None, _ASCII)) and not _NO_THAI.search(sample)


def _single_byte(sample: bytes, language: str) -> str:
    # Imported here: most crawls never need it, and it costs 30 ms of the start.
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_NAMES, enable_fallback=False, preemptive_behaviour=False).best()
    if best is None:
        return _LATIN_OF.get(language, DEFAULT)
    name = _CANDIDATES.get(best.encoding, DEFAULT)
    if name not in _LATIN:
        return name
    # Latin encodings differ in so few letters that most of them read well: the declared language knows better, and
    # without one the web's default stands unless it puts symbols inside words.
    if language:
        return _LATIN_OF.get(language, DEFAULT)
    symbols = len(_SYMBOL_IN_WORD.findall(sample.decode("cp1252", "replace")))
    return name if symbols * 20 > len(sample.translate(None, _ASCII)) else DEFAULT


def _language(scanned: bytes) -> str:
    found = _LANG.search(scanned[:2048])
    return found[1].decode("ascii").lower() if found else ""


def _is_utf8(scanned: bytes) -> bool:
    """True when nearly every non-ASCII byte is part of a UTF-8 character: one broken byte does not make it legacy."""
    try:
        codecs.utf_8_decode(scanned, "strict", False)  # a character may be cut at its end
    except UnicodeDecodeError:
        # Python takes 20 ns per replaced byte: only the window is read this way.
        window = _window(scanned)
        text = window.decode("utf-8", "replace")
        broken = text.count("\ufffd")
        whole = len(window) - len(text.encode("ascii", "ignore")) - broken
        return broken * 20 <= whole
    return True


def _window(scanned: bytes) -> bytes:
    first = _HIGH.search(scanned)
    start = max(0, first.start() - 64) if first else 0
    return scanned[start : start + WINDOW_BYTES]


def _sample(scanned: bytes) -> bytes:
    """The words with non-ASCII bytes, without markup: tags and English scripts only dilute what is measured."""
    text = _TAG.sub(b" ", _window(scanned))
    return b" ".join([word for word in text.split() if not word.isascii()])[:SAMPLE_BYTES]


def _by_mark(body: bytes) -> str:
    if body.startswith(b"\xef\xbb\xbf"):
        return "utf-8"
    if body.startswith(b"\xff\xfe"):
        return "utf-16le"
    return "utf-16be" if body.startswith(b"\xfe\xff") else ""


_LITTLE: Final = re.compile(rb"(?:[\t\n\r ]\0){0,20}<\0[!?/A-Za-z]\0")
_BIG: Final = re.compile(rb"(?:\0[\t\n\r ]){0,20}\0<\0[!?/A-Za-z]")


def _by_zeros(body: bytes) -> str:
    """UTF-16 without a mark, by how markup begins in it (XML 1.0, appendix F)."""
    if b"\0" not in body[:2]:
        return ""
    return "utf-16le" if _LITTLE.match(body) else "utf-16be" if _BIG.match(body) else ""


_XML: Final = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")


def _xml_declared(body: bytes) -> str:
    found = _XML.match(body[:256])
    if found is None:
        return ""
    named = webencodings.lookup(found[1].decode("ascii"))
    if named is None:
        return ""
    # It could not be read in ASCII, were it true: programs write what they had in memory.
    return "utf-8" if named.name.startswith("utf-16") else str(named.name)
