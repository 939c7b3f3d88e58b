"""Encodings of pages that declare none: right answers by language and encoding, CPU per page, beside other detectors.

The pages are sentences of a translated program, each in a page's markup, in every encoding that its language was
written in on the web. An answer is right when the page reads under it as it was written.

    python -m benchmarks.bench_charsets DIR        DIR: unpacked sources of Django, or any tree of locale/LANG/*.po
"""

from __future__ import annotations

import argparse
import random
import re
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import webencodings
from nephila.native import sniff_encoding
from nephila.parser.page.charset import encoding_of

ENCODINGS = {
    **dict.fromkeys(("cs", "pl", "hu", "ro", "hr"), ("windows-1250", "iso-8859-2")),
    "ru": ("windows-1251", "koi8-r", "ibm866", "iso-8859-5"),
    "uk": ("windows-1251", "koi8-u"),
    "bg": ("windows-1251", "iso-8859-5"),
    "el": ("windows-1253", "iso-8859-7"),
    "he": ("windows-1255", "iso-8859-8"),
    "ar": ("windows-1256", "iso-8859-6"),
    "tr": ("windows-1254",),
    "lt": ("windows-1257", "iso-8859-13"),
    "lv": ("windows-1257",),
    "vi": ("windows-1258",),
    "th": ("windows-874",),
    **dict.fromkeys(("de", "es", "sv"), ("windows-1252",)),
    "fr": ("windows-1252", "iso-8859-15"),
    "ja": ("shift_jis", "euc-jp", "iso-2022-jp"),
    "ko": ("euc-kr",),
    "zh_Hans": ("gbk", "gb18030"),
    "zh_Hant": ("big5",),
}
CODECS = {"windows-874": "cp874", "windows-1258": "cp1258", "ibm866": "cp866"}
SIZES = (200, 800, 4000)
PAGES_EACH = 4
MESSAGE = re.compile(r'^msgstr(?:\[0\])? ((?:"(?:[^"\\]|\\.)*"\n?)+)', re.M)
PLACES = re.compile(r"%\(\w+\)[sd]|%[sd]|\{[^}]*\}|<[^>]*>|&\w+;")
Detector = Callable[[bytes], str | None]


def sentences(root: Path, language: str) -> list[str]:
    """What the translations of a language say, without their placeholders."""
    found = []
    for path in sorted(root.rglob(f"locale/{language}/LC_MESSAGES/*.po")):
        for block in MESSAGE.findall(path.read_text(encoding="utf-8")):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', block)).replace("\\n", " ").replace('\\"', '"')
            text = PLACES.sub("", text)
            if len(text) > 12 and "Content-Type" not in text and not text.isascii():
                found.append(text)
    return found


def encoded(text: str, encoding: str) -> bytes:
    """A text in an encoding, what that has not left out; Vietnamese tones stand behind their letters there."""
    if encoding == "windows-1258":
        text = "".join(map(_with_tone, text))
    return text.encode(CODECS.get(encoding, encoding), "ignore")


def _with_tone(char: str) -> str:
    parts = unicodedata.normalize("NFD", char)
    for letter, tone in ((parts[:2], parts[2:]), (parts[::2], parts[1:2]), (parts[:1], parts[1:])):
        split = unicodedata.normalize("NFC", letter) + tone
        try:
            char.encode("cp1258")
        except UnicodeEncodeError:
            try:
                split.encode("cp1258")
            except UnicodeEncodeError:
                continue
            return split
        return char
    return char


def pages(root: Path) -> Iterator[tuple[str, str, bytes]]:
    """Language, encoding, body."""
    for language, encodings in ENCODINGS.items():
        known = sentences(root, language)
        for encoding in encodings:
            for size in SIZES:
                for number in range(PAGES_EACH):
                    chosen = known[:]
                    random.Random(f"{language}{size}{number}").shuffle(chosen)
                    yield language, encoding, encoded(_page(chosen, size), encoding)


def _page(texts: list[str], size: int) -> str:
    chosen: list[str] = []
    for text in texts:
        chosen.append(text)
        if sum(map(len, chosen)) > size:
            break
    items = "\n".join(
        f'<div class="item"><p>{text}</p><a href="/item/{n}">more</a></div>' for n, text in enumerate(chosen)
    )
    return (
        f'<!doctype html><html><head><title>{chosen[0]}</title><link rel="stylesheet" href="/style.css">'
        '<script>var a = "x"; function f() { return a }</script></head><body><div id="nav"><a href="/">Home</a></div>'
        f"{items}<footer>Copyright 2010</footer></body></html>"
    )


def reads(body: bytes, name: str | None) -> str:
    """The page under an answer: WHATWG's name or a codec's."""
    try:
        return body.decode(CODECS.get(name or "", name or ""), "replace")
    except LookupError:
        return ""


def detectors() -> dict[str, Detector]:
    """Ours, and those that are installed."""
    found: dict[str, Detector] = {"nephila": lambda body: encoding_of(body, "", sniff_encoding)}
    try:
        import chardet

        found[f"chardet {chardet.__version__}"] = lambda body: chardet.detect(body)["encoding"]
    except ImportError:
        pass
    try:
        import cchardet

        found["faust-cchardet"] = lambda body: cchardet.detect(body)["encoding"]
    except ImportError:
        pass
    try:
        from charset_normalizer import from_bytes

        found["charset-normalizer"] = lambda body: getattr(from_bytes(body).best(), "encoding", None)
    except ImportError:
        pass
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    made = list(pages(parser.parse_args().directory))
    asked = detectors()
    right: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: dict.fromkeys(asked, 0))
    counts: dict[tuple[str, str], int] = defaultdict(int)
    cpu_s = dict.fromkeys(asked, 0.0)
    for language, encoding, body in made:
        counts[language, encoding] += 1
        codec = webencodings.lookup(encoding).codec_info.name
        truth = reads(body, CODECS.get(encoding, codec if encoding != "iso-2022-jp" else "iso2022_jp"))
        for name, detect in asked.items():
            began = time.process_time()
            answer = detect(body)
            cpu_s[name] += time.process_time() - began
            right[language, encoding][name] += reads(body, answer) == truth
    print("| language, encoding | pages | " + " | ".join(asked) + " |\n|---|---|" + "---|" * len(asked))
    for key, by_name in right.items():
        print(f"| {', '.join(key)} | {counts[key]} | " + " | ".join(str(by_name[name]) for name in asked) + " |")
    total = {name: sum(of[name] for of in right.values()) for name in asked}
    print(f"| all | {len(made)} | " + " | ".join(f"{100 * total[name] / len(made):.1f} %" for name in asked) + " |")
    print("| CPU a page | | " + " | ".join(f"{1000 * cpu_s[name] / len(made):.2f} ms" for name in asked) + " |")
    utf8 = [body.decode(CODECS.get(of, of), "replace").encode() for _, of, body in made if of == "windows-1251"] * 20
    began = time.process_time()
    for body in utf8:
        encoding_of(body, "", sniff_encoding)
    print(f"UTF-8 pages: {1e6 * (time.process_time() - began) / len(utf8):.1f} µs each")


if __name__ == "__main__":
    main()
