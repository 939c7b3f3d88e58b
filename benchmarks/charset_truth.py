"""Texts whose legacy encoding is known: files that people collected, and pages in UTF-8 that are encoded again.

Sources, downloaded into a cache: the test files of chardet 5.2 and of charset-normalizer; the Debian installation guide
(19 languages) and the snippets of cld2 (pycld2), which nothing was tuned on; GNOME's help (`gnome`), which is for
development; WCXB pages (English). A text of N bytes stands in a small page without a declaration.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import webencodings
from nephila.native import page_pass

from benchmarks.maintext_truth import pages as wcxb_pages

LENGTHS: Final = (200, 1000, 0)
"""Bytes of text; 0 = the whole page."""
PAGES: Final = 12
"""Of each language, encoding and length."""

_CENTRAL, _CYRILLIC = ("windows-1250", "iso-8859-2"), ("windows-1251", "iso-8859-5", "ibm866", "x-mac-cyrillic")
_WESTERN, _BALTIC = ("windows-1252", "iso-8859-15", "macintosh"), ("windows-1257", "iso-8859-13")
ENCODINGS: Final = {
    **dict.fromkeys(("cs", "hu", "pl", "ro", "hr", "sl", "sk"), _CENTRAL),
    **dict.fromkeys(("bg", "mk", "sr"), _CYRILLIC),
    **dict.fromkeys(("ca", "da", "de", "en", "es", "fi", "fr", "gl", "is", "it", "nl", "no", "pt", "sv"), _WESTERN),
    **dict.fromkeys(("et", "lt", "lv"), _BALTIC),
    "ru": (*_CYRILLIC, "koi8-r"),
    "uk": (*_CYRILLIC, "koi8-u"),
    "be": _CYRILLIC[:2],
    "el": ("windows-1253", "iso-8859-7"),
    "tr": ("windows-1254",),
    "he": ("windows-1255", "iso-8859-8"),
    "ar": ("windows-1256", "iso-8859-6"),
    "vi": ("windows-1258",),
    "th": ("windows-874",),
    "ja": ("shift_jis", "euc-jp", "iso-2022-jp"),
    "ko": ("euc-kr",),
    "zh_CN": ("gbk", "gb18030"),
    "zh_TW": ("big5",),
}
"""Language → WHATWG names of the legacy encodings that its pages are written in."""
_PYTHON: Final = {"windows-874": "cp874", "macintosh": "mac-roman", "x-mac-cyrillic": "mac-cyrillic", "ibm866": "cp866"}
_FILES_OF_NORMALIZER: Final = {
    "arabic-1": "windows-1256",
    "french-1": "windows-1252",
    "chinese": "big5",
    "greek": "windows-1253",
    "greek-2": "windows-1253",
    "hebrew-2": "windows-1255",
    "hebrew-3": "windows-1255",
    "korean": "euc-kr",
    "turkish": "windows-1254",
    "russian": "x-mac-cyrillic",
}
_SUFFIX: Final = re.compile(
    r"-(croatian|czech|hungarian|polish|slovak|slovene|bulgarian|russian|arabic|greek|turkish)$|-romanian$|-hebrew$"
)
_NAMES_OF_CHARDET: Final = {
    "maccyrillic": "x-mac-cyrillic",
    "macroman": "macintosh",
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "tis-620": "windows-874",
    "gb2312": "gbk",
}
_SDISTS: Final = {
    "chardet-5.2.0": "chardet==5.2.0",
    "charset_normalizer-3.5.2": "charset-normalizer==3.5.2",
    "pycld2-0.42": "pycld2==0.42",
}
_DEBS: Final = ("installation-guide-amd64", "gnome-user-docs")
_SNIPPET: Final = re.compile(r'^const char\* kTeststr_([a-z]{2})_(\w+?)\d? = "([^"]+)"', re.MULTILINE)
_CLD2: Final = {"zh_Hans": "zh_CN", "zh_Hant": "zh_TW"}
_DECLARATION: Final = re.compile(rb"<meta[^>]+charset[^>]*>|<\?xml[^>]*\?>", re.IGNORECASE)
_COMMA_BELOW: Final = str.maketrans("șțȘȚ", "şţŞŢ")
"""Romanian in encodings that have the cedilla instead."""
_TAG: Final = re.compile(r"<[^<>]*>")


class Encoded(NamedTuple):
    """One document and the encoding that it is in."""

    source: str
    language: str
    length: int
    """Bytes of text, about; 0 = as it came."""
    encoding: str
    body: bytes


def fetch(cache: Path) -> None:
    """Download and unpack what is not in the cache. SystemExit where that fails."""
    cache.mkdir(parents=True, exist_ok=True)
    try:
        for name, requirement in _SDISTS.items():
            if not (cache / name).exists():
                command = [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "-q",
                    "--no-deps",
                    "--no-binary",
                    ":all:",
                    requirement,
                ]
                subprocess.run(command, cwd=cache, check=True, capture_output=True)
                with tarfile.open(cache / f"{name}.tar.gz") as archive:
                    archive.extractall(cache, filter="data")
        for name in _DEBS:
            if not (cache / name).exists():
                subprocess.run(["apt-get", "-qq", "download", name], cwd=cache, check=True, capture_output=True)
                subprocess.run(["dpkg", "-x", next(cache.glob(f"{name}_*.deb")).name, name], cwd=cache, check=True)
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        sys.exit(f"not downloaded: {error}; needs pip, and apt-get of Debian 12")


def collected(cache: Path) -> Iterator[Encoded]:
    """Files that people collected, in encodings that WHATWG has; UTF-8 and UTF-16 are left out."""
    for folder in sorted((cache / "chardet-5.2.0/tests").iterdir()):
        name = _SUFFIX.sub("", folder.name.lower())
        found = webencodings.lookup(_NAMES_OF_CHARDET.get(name, name))
        if found is None or name.startswith(("utf", "ascii", "iso-2022-kr")):
            continue
        for path in sorted(folder.iterdir()):
            yield Encoded("files", "", 0, str(found.name), path.read_bytes())
    for name, encoding in _FILES_OF_NORMALIZER.items():
        path = cache / f"charset_normalizer-3.5.2/data/sample-{name}.txt"
        yield Encoded("files", "", 0, encoding, path.read_bytes())


def guide(cache: Path) -> Iterator[Encoded]:
    """The Debian installation guide."""
    root = cache / "installation-guide-amd64/usr/share/doc/installation-guide-amd64"
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        paths = sorted(folder.glob("*.html"), key=lambda path: zlib.crc32(path.name.encode()))
        bodies = [path.read_bytes() for path in paths]
        yield from _encoded("guide", folder.name, ((_text(body), body.decode()) for body in bodies))


def gnome(cache: Path) -> Iterator[Encoded]:
    """GNOME's help."""
    for folder in sorted((cache / "gnome-user-docs/usr/share/help").iterdir()):
        paths = sorted((folder / "gnome-help").glob("*.page"), key=lambda path: zlib.crc32(path.name.encode()))
        sources = (path.read_text("utf-8") for path in paths)
        yield from _encoded("gnome", folder.name, ((_squeezed(_TAG.sub(" ", one)), one) for one in sources))


def snippets(cache: Path) -> Iterator[Encoded]:
    """Snippets of cld2's tests, some 200 letters of web pages each."""
    source = (cache / "pycld2-0.42/cld2/internal/unittest_data.h").read_text("utf-8")
    texts: dict[str, list[str]] = {}
    for language, script, text in _SNIPPET.findall(source):
        name = _CLD2.get(f"{language}_{script}", "he" if language == "iw" else language)
        if not (language == "sr" and script == "Latn"):
            texts.setdefault(name, []).append(text)
    for name, known in sorted(texts.items()):
        yield from _encoded("cld2", name, ((text, "") for text in known), lengths=(200,))


def wcxb(directory: Path) -> Iterator[Encoded]:
    """WCXB's development pages (English), encoded again."""
    bodies = [page.body for page in wcxb_pages(directory)][: 10 * PAGES]
    yield from _encoded("wcxb", "en", ((_text(body), body.decode("utf-8", "ignore")) for body in bodies))


def _encoded(
    source: str, language: str, documents: Iterable[tuple[str, str]], lengths: tuple[int, ...] = LENGTHS
) -> Iterator[Encoded]:
    """PAGES documents of each encoding and length, of pairs of text and whole page."""
    known = list(documents)
    for encoding in ENCODINGS.get(language, ()):
        for length in lengths:
            found = 0
            for text, page in known:
                body = _page(text, page, encoding, length)
                if body is not None and found < PAGES:
                    found += 1
                    yield Encoded(source, language, length, encoding, body)


def _page(text: str, page: str, encoding: str, length: int) -> bytes | None:
    """The document in an encoding; None where it is too short or has no letter that tells encodings apart."""
    if length:
        raw = _bytes_of(text, encoding, length)
        if len(raw) < length // 2:
            return None
        body = b"<!DOCTYPE html>\n<html><head></head><body><p>" + raw + b"</p></body></html>\n"
    else:
        body = _bytes_of(_DECLARATION.sub(b"", page.encode()).decode(), encoding, len(page) * 4)
    return None if body.isascii() and b"\x1b" not in body else body


def _bytes_of(text: str, encoding: str, most: int) -> bytes:
    """The start of a text, at most about so many bytes; characters that the encoding does not have are left out."""
    name = _PYTHON.get(encoding, encoding)
    if encoding == "windows-1258":
        text = _vietnamese(text)
    elif encoding in _CENTRAL:
        text = text.translate(_COMMA_BELOW)
    return text[:most].encode(name, "ignore")[:most].decode(name, "ignore").encode(name)


def _vietnamese(text: str) -> str:
    """Tone marks stand alone in windows-1258, other marks with their letter."""
    marks = {"\u0300", "\u0301", "\u0303", "\u0309", "\u0323"}
    out = []
    for letter in unicodedata.normalize("NFC", text):
        parts = unicodedata.normalize("NFD", letter)
        tones = "".join(part for part in parts if part in marks)
        out.append(unicodedata.normalize("NFC", "".join(part for part in parts if part not in marks)) + tones)
    return "".join(out)


def _text(body: bytes) -> str:
    found = page_pass(body, "http://page.invalid/", "utf-8")
    return _squeezed((found.main_text or found.text).decode())


def _squeezed(text: str) -> str:
    return " ".join(text.split())
