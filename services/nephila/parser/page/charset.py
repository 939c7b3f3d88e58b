"""The encoding of a document: the declared one, else the one that its bytes suggest.

Order: UTF-16 without a byte order mark; byte order mark, Content-Type, <meta> and valid UTF-8 (native sniff, WHATWG's
rules); XML declaration; chardet on bounded samples, restricted to WHATWG's encodings; windows-1252. Invariants: the
result is a WHATWG name of webencodings; a body costs a few milliseconds at most, once chardet is loaded.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable
from typing import Final

import webencodings

from nephila.kernel.runtime.late_pattern import late_pattern

Sniff = Callable[[bytes, str | None], str]
Classify = Callable[[bytes, bytes], str]
"""Text of a page, and of it the words around those beyond ASCII → a name of `_CANDIDATES`, "" for none."""

DEFAULT: Final = "windows-1252"
SCAN_BYTES: Final = 256 * 1024
"""Bytes of a body that are looked at; a page whose first non-ASCII letter comes later is as good as ASCII."""
WINDOW_BYTES: Final = 32 * 1024
"""Bytes from the first non-ASCII one on that the sample is taken from."""
SAMPLE_BYTES: Final = 4 * 1024
"""Bytes given to the detector; its time grows with them, its verdict hardly."""

# What chardet may answer: the encodings of WHATWG's standard by its names for them, and WHATWG's name where another.
_CANDIDATES: Final = {
    **dict.fromkeys(("big5", "gb18030", "koi8-r", "koi8-u", "macintosh"), ""),
    "mac-cyrillic": "x-mac-cyrillic",
    **{f"cp125{digit}": f"windows-125{digit}" for digit in range(9)},
    **{f"iso8859-{part}": f"iso-8859-{part}" for part in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)},
    "cp866": "ibm866",
    "mac-roman": "macintosh",
    "cp874": "windows-874",
    "tis-620": "windows-874",
    "big5hkscs": "big5",
    "cp932": "shift_jis",
    "shift_jis_2004": "shift_jis",
    "euc_jis_2004": "euc-jp",
    "cp949": "euc-kr",
}
_NAMES: Final = tuple(_CANDIDATES)
_SMALL: Final = frozenset("абвгдежзийклмнопрстуфхцчшщъыьэюяёђѓєѕіїјљњћќўџ")
_ODD: Final = frozenset("ˆ˜‡†‰ƒ¸¨´¯˘˙˚˝˛ˇ∂∑∏π∫Ω√≈∆◊ﬁﬂ≠∞≤≥\ufffd")
_RARE: Final = frozenset("ЂЃѓЏђ")
_JOINTS: Final = frozenset("’–—·")
_PAIRS: Final = (("cp1251", "mac-cyrillic"), ("cp1252", "iso8859-1", "iso8859-15", "mac-roman"))
"""An encoding and that of old Macintoshes, last, which chardet takes for it in short texts."""
_NEIGHBOURS: Final = 3
"""Words on each side of one beyond ASCII that the classifier reads as well."""

_OTHER_SCRIPTS: Final = frozenset(
    name
    for name in _NAMES
    if name.startswith(("koi8", "cp866", "cp874", "tis", "mac-c"))
    or name in ("cp1251", "cp1253", "cp1255", "cp1256", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8")
)
"""Encodings of one byte a letter whose letters stand together."""
USUAL: Final = 1.0
"""How much more likely windows-1252 is at the outset, divided by the number of bytes beyond ASCII."""
_LATIN_SHARE: Final = 0.5
"""Of letters beyond ASCII that stand alone beside an ASCII one: above 0.5 in languages of the Latin script but
Vietnamese (0.2 to 0.5), below 0.2 in all others (ADR 37)."""
_LONE_LETTER: Final = late_pattern(rb"(?<=[A-Za-z])[\xa1-\xff](?![\xa1-\xff])|(?<![\xa1-\xff])[\xa1-\xff](?=[A-Za-z])")
_LONE_WORD: Final = late_pattern(rb"(?<![!-\xff])[\xa1-\xff](?![!-\xff])")
_ASCII: Final = bytes(range(0x80))
_CONTROLS: Final = bytes(0x20 if 0x80 <= byte <= 0xA0 else byte for byte in range(0x100))
_ABOVE: Final = bytes(range(0xA1, 0x100))

_HIGH: Final = late_pattern(rb"[\x80-\xff]")
_TAG: Final = late_pattern(rb"<[^<>]*>")
_BLANK: Final = late_pattern(rb"(?<![\x80-\xff])\xa0(?![\x80-\xff])")
"""A space that does not break, in most encodings; a lone letter in a few."""
_ISO_2022_JP: Final = (b"\x1b$B", b"\x1b$@", b"\x1b(J")


def classify(text: bytes, around: bytes) -> str:
    """The encoding that chardet finds most likely. The first call loads the library: 0.1 s of CPU, 27 MB.

    The product of two confidences decides: the whole text shows the language of a page, the words around letters beyond
    ASCII those of a page that is mostly English (ADR 37)."""
    from chardet import detect_all

    scores: dict[str, float] = {}
    for sample in (text, around):
        guesses = detect_all(sample, ignore_threshold=True, include_encodings=_NAMES, compat_names=False)
        confidences = {guess["encoding"] or "": guess["confidence"] for guess in guesses}
        scores = {name: scores.get(name, 1.0) * confidences.get(name, 0.0) for name in scores or confidences}
    if _is_latin(text):
        scores = {name: score for name, score in scores.items() if name not in _OTHER_SCRIPTS}
    if "cp1252" in scores:
        scores["cp1252"] *= 1 + USUAL / max(len(text.translate(None, _ASCII)), 1)
    return max(scores, key=scores.__getitem__, default="")


class ClassifierNotLoadedError(Exception):
    """The page needs chardet, which is not loaded yet; it has to be parsed again afterwards."""


class BackgroundClassifier:
    """`classify` for an event loop: a thread loads the library, and only when the first page needs it."""

    def __init__(self) -> None:
        self._loaded = False

    def __call__(self, text: bytes, around: bytes) -> str:
        """Classifies as `classify` does; raises `ClassifierNotLoadedError` until the caller has awaited `load`."""
        if not self._loaded:
            raise ClassifierNotLoadedError
        return classify(text, around)

    async def load(self) -> None:
        """Load the library and its models in a thread."""
        if not self._loaded:
            sample = "\u0442\u0435\u043a\u0441\u0442".encode("cp1251") * 50
            await asyncio.to_thread(classify, sample, sample)
            self._loaded = True


def encoding_of(body: bytes, charset: str, sniff: Sniff, classify: Classify = classify) -> str:
    """WHATWG name, lower case, of the encoding of an HTML body; `charset` is the header's, "" when there is none."""
    encoding = _by_zeros(body) or sniff(body, charset or None) or _xml_declared(body) or detect(body, classify)
    if encoding == "utf-8" and not charset and b"\x1b" in body[:SCAN_BYTES] and body[:SCAN_BYTES].isascii():
        # ISO-2022-JP is ASCII, and so valid UTF-8. A declared encoding is kept.
        start = body[:SCAN_BYTES]
        return detect(body, classify) if not sniff(start + b"\xff", None) and _is_japanese(start) else encoding
    return encoding


def encoding_of_text(body: bytes, charset: str, content_type: str, classify: Classify = classify) -> str:
    """The same for a body that is not HTML: <meta> is ignored, XML may declare its encoding, JSON is UTF-8 (RFC 8259).
    XML without a declaration that is not valid UTF-8 is classified by its bytes."""
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
        return declared if declared != "utf-8" or _is_utf8(body[:SCAN_BYTES]) else detect(body, classify)
    return "utf-8" if body.isascii() else detect(body, classify)


def detect(body: bytes, classify: Classify = classify) -> str:
    """The encoding of undeclared bytes, windows-1252 if no other is likely."""
    scanned = body[:SCAN_BYTES]
    if scanned.isascii():
        return "iso-2022-jp" if _is_japanese(scanned) else DEFAULT
    if _is_utf8(scanned):
        return "utf-8"
    text = _text(scanned)
    if text.isascii():
        return DEFAULT
    name = classify(text[:SAMPLE_BYTES], _around(text)[:SAMPLE_BYTES])
    for pair in _PAIRS:
        if name in pair:
            # The first on a draw: of two readings that both make sense, the one that more pages have.
            usual, mac = (
                _strange(text[:SAMPLE_BYTES].decode(candidate, "replace")) for candidate in (pair[0], pair[-1])
            )
            name = pair[-1] if mac < usual else name if name != pair[-1] else pair[0]
    codec = webencodings.lookup(_CANDIDATES.get(name) or name or DEFAULT)
    return str(codec.name) if codec is not None else DEFAULT


def _strange(text: str) -> int:
    """Characters where they should not stand: capitals, symbols and rare letters behind a small letter of their kind,
    symbols within a word, and some symbols anywhere."""
    count = 0
    for before, letter, after in zip(" " + text, text, text[1:] + " ", strict=False):
        if letter < "\x80":
            continue
        if letter in _ODD or "\x80" <= letter < "\xa0":
            count += 1
        elif before in _SMALL:
            count += letter not in _SMALL
        elif letter in _RARE:
            count += 1
        elif letter.isalpha():
            count += letter.isupper() and before.islower()
        else:
            count += before.isalpha() and after.isalpha() and letter not in _JOINTS
    return count


def _is_latin(text: bytes) -> bool:
    """French has letters that are the frequent ones of Cyrillic text; their positions distinguish the two."""
    text = text.translate(_CONTROLS)
    high = len(text) - len(text.translate(None, _ABOVE))
    lone = len(_LONE_LETTER.findall(text))
    return lone >= _LATIN_SHARE * high or lone + len(_LONE_WORD.findall(text)) == high


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


def _text(scanned: bytes) -> bytes:
    """The text around the non-ASCII bytes, without markup: tags and English scripts only dilute what is measured."""
    return b" ".join(_BLANK.sub(b" ", _TAG.sub(b" ", _window(scanned))).split())


def _around(text: bytes) -> bytes:
    """The words with a letter beyond ASCII, and _NEIGHBOURS on each side of them. O(length)."""
    words = text.split(b" ")
    chosen: list[bytes] = []
    until = done = 0
    for position, word in enumerate(words):
        if not word.isascii():
            chosen += words[max(done, position - _NEIGHBOURS) : position]
            done, until = position, position + _NEIGHBOURS + 1
        if position < until:
            chosen.append(word)
            done = position + 1
    return b" ".join(chosen)


def _by_mark(body: bytes) -> str:
    if body.startswith(b"\xef\xbb\xbf"):
        return "utf-8"
    if body.startswith(b"\xff\xfe"):
        return "utf-16le"
    return "utf-16be" if body.startswith(b"\xfe\xff") else ""


_LITTLE: Final = late_pattern(rb"(?:[\t\n\r ]\0){0,20}<\0[!?/A-Za-z]\0")
_BIG: Final = late_pattern(rb"(?:\0[\t\n\r ]){0,20}\0<\0[!?/A-Za-z]")


def _by_zeros(body: bytes) -> str:
    """UTF-16 without a mark, by how markup begins in it (XML 1.0, appendix F)."""
    if b"\0" not in body[:2]:
        return ""
    return "utf-16le" if _LITTLE.match(body) else "utf-16be" if _BIG.match(body) else ""


_XML: Final = late_pattern(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")


def _xml_declared(body: bytes) -> str:
    declaration = _XML.match(body[:256])
    if declaration is None:
        return ""
    named = webencodings.lookup(declaration[1].decode("ascii"))
    if named is None:
        return ""
    # It could not be read in ASCII, were it true: programs write what they had in memory.
    return "utf-8" if named.name.startswith("utf-16") else str(named.name)


def text_of(body: bytes, encoding: str) -> str:
    """A body as text; undecodable bytes are U+FFFD. `encoding`: its WHATWG name."""
    looked_up = webencodings.lookup(encoding)
    codec = looked_up.codec_info.name if looked_up is not None else "windows-1252"
    text = body.decode(codec, "replace")
    if not text.isascii():
        # Some codecs give lone surrogates, which libraries reject.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _lone(text) else text
    return text.removeprefix("\ufeff")


def _lone(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
