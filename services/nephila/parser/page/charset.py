"""The encoding of a document: what it declares (native sniff), else what its bytes look like.

Order: markup with a zero beside each letter (UTF-16 without its mark), then byte order mark, Content-Type, <meta>,
valid UTF-8 - all in the native sniff, by WHATWG's rules - then an XML declaration, then chardet on a bounded sample of
the text, among the encodings of WHATWG alone, then windows-1252. Invariant: the answer is a WHATWG name that
webencodings knows, and no body costs more than a few milliseconds, whatever is in it; UTF-8 is never looked at twice.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Final

import webencodings

Sniff = Callable[[bytes, str | None], str]

DEFAULT: Final = "windows-1252"
SCAN_BYTES: Final = 256 * 1024
"""Bytes of a body that are looked at; a page whose first non-ASCII letter comes later is as good as ASCII."""
WINDOW_BYTES: Final = 32 * 1024
"""Bytes from the first non-ASCII one on that the sample is taken from."""
SAMPLE_BYTES: Final = 4 * 1024
"""Bytes given to the detector; its time grows with them, its verdict hardly."""
MIN_HIGH_BYTES: Final = 6
"""Fewer non-ASCII bytes than this are a lone currency sign or accent, of which a detector makes anything."""

# What chardet may answer: the encodings of WHATWG's standard by its names for them, and WHATWG's name where another.
_CANDIDATES: Final = {
    **dict.fromkeys(("big5", "gb18030", "koi8-r", "koi8-u", "macintosh"), ""),
    **{f"cp125{digit}": f"windows-125{digit}" for digit in range(9)},
    **{f"iso8859-{part}": f"iso-8859-{part}" for part in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)},
    "cp866": "ibm866",
    "cp874": "windows-874",
    "tis-620": "windows-874",
    "big5hkscs": "big5",
    "cp932": "shift_jis",
    "shift_jis_2004": "shift_jis",
    "euc_jis_2004": "euc-jp",
    "cp949": "euc-kr",
}
_NAMES: Final = tuple(_CANDIDATES)
_LATIN_NAMES: Final = (
    *(f"cp125{digit}" for digit in (0, 2, 4, 7, 8)),
    *(f"iso8859-{part}" for part in (1, 2, 3, 4, 9, 10, 13, 14, 15, 16)),
    "macintosh",
)
_LATIN_SHARE: Final = 0.5
"""Of letters beyond ASCII that stand alone beside an ASCII one: above 0.5 in languages of the Latin script but
Vietnamese (0.2 to 0.5), below 0.2 in all others (`benchmarks/bench_charsets.py`)."""
_LONE_LETTER: Final = re.compile(rb"(?<=[A-Za-z])[\xa0-\xff](?![\xa0-\xff])|(?<![\xa0-\xff])[\xa0-\xff](?=[A-Za-z])")
_CONTROLS: Final = bytes(0x20 if 0x80 <= byte < 0xA0 else byte for byte in range(0x100))

_HIGH: Final = re.compile(rb"[\x80-\xff]")
_TAG: Final = re.compile(rb"<[^<>]*>")
_ASCII: Final = bytes(range(0x80))
_ABOVE: Final = bytes(range(0xA0, 0x100))
_PRESCAN_BYTES: Final = 1024
_ISO_2022_JP: Final = (b"\x1b$B", b"\x1b$@", b"\x1b(J")


def encoding_of(body: bytes, charset: str, sniff: Sniff) -> str:
    """WHATWG name, lower case, of the encoding of an HTML body; `charset` is the header's, "" when there is none."""
    found = _by_zeros(body) or sniff(body, charset or None) or _xml_declared(body) or detect(body)
    if found == "utf-8" and not charset and b"\x1b" in body[:SCAN_BYTES] and body[:SCAN_BYTES].isascii():
        # ISO-2022-JP is ASCII to whoever looks for UTF-8. What declares itself is left as it says.
        start = body[:_PRESCAN_BYTES]
        return detect(body) if not sniff(start + b"\xff", None) and _is_japanese(body[:SCAN_BYTES]) else found
    return found


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
        return "iso-2022-jp" if _is_japanese(scanned) else DEFAULT
    if _is_utf8(scanned):
        return "utf-8"
    sample = _sample(scanned)
    if len(sample.translate(None, _ASCII)) < MIN_HIGH_BYTES:
        return DEFAULT
    # Imported here: most crawls never need it.
    from chardet import detect as by_look

    names = _LATIN_NAMES if _is_latin(sample) else _NAMES
    name = by_look(sample, include_encodings=names, compat_names=False)["encoding"] or DEFAULT
    known = webencodings.lookup(_CANDIDATES.get(name) or name)
    return str(known.name) if known is not None else DEFAULT


def _is_latin(sample: bytes) -> bool:
    """French has letters that are the frequent ones of Cyrillic text; where they stand tells them apart."""
    text = sample.translate(_CONTROLS)
    high = len(text) - len(text.translate(None, _ABOVE))
    return len(_LONE_LETTER.findall(text)) >= _LATIN_SHARE * high


def _is_japanese(scanned: bytes) -> bool:
    return any(mark in scanned for mark in _ISO_2022_JP)


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
    """The text around the non-ASCII bytes, without markup: tags and English scripts only dilute what is measured."""
    return b" ".join(_TAG.sub(b" ", _window(scanned)).split())[:SAMPLE_BYTES]


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
