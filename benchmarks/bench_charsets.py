"""Encodings of undeclared pages beside charset-normalizer, chardet, faust-cchardet and chardetng.

    python -m benchmarks.bench_charsets CACHE [--wcxb ../shared/data/wcxb-dev] [--source guide] [--rivals] [--wrong]

Right = the text that the answer decodes is the original. Tables: by source and length, by encoding and length; CPU-ms
per page. `gnome` is for development; errors on the guide, cld2 and chardet's files were read as well when the rules of
parser/page/charset.py were made, so their figures are not those of unseen data.
"""

from __future__ import annotations

import argparse
import codecs
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import webencodings

from benchmarks.charset_truth import Encoded, collected, fetch, gnome, guide, snippets, wcxb
from benchmarks.report import table

Detect = Callable[[bytes], str | None]


def ours() -> Detect:
    """What the parser does with HTML."""
    from nephila.native import sniff_encoding
    from nephila.parser.page.charset import encoding_of

    return lambda body: encoding_of(body, "", sniff_encoding)


def charset_normalizer() -> Detect:
    """As it comes."""
    from charset_normalizer import from_bytes

    def run(body: bytes) -> str | None:
        best = from_bytes(body).best()
        return best.encoding if best else None

    return run


def chardet() -> Detect:
    """As it comes."""
    from chardet import detect

    return lambda body: detect(body)["encoding"]


def cchardet() -> Detect:
    """As it comes."""
    from cchardet import detect  # type: ignore[import-not-found,unused-ignore]

    return lambda body: detect(body)["encoding"]


def chardetng() -> Detect:
    """Firefox's, as it comes; it never answers UTF-8."""
    from chardetng_py import detect  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return lambda body: detect(body)


RIVALS = {
    "chardet": chardet,
    "charset-normalizer": charset_normalizer,
    "faust-cchardet": cchardet,
    "chardetng": chardetng,
}


def decoded(body: bytes, name: str | None) -> str | None:
    """The text by an encoding's name; None for an unknown one."""
    if not name:
        return None
    known = webencodings.lookup(name)
    try:
        return body.decode(known.codec_info.name if known else codecs.lookup(name).name, "replace")
    except LookupError:
        return None


def is_right(one: Encoded, name: str | None) -> bool:
    """True when the answer decodes the document as its own encoding does."""
    return decoded(one.body, name) == decoded(one.body, one.encoding)


def share(values: Iterable[bool]) -> str:
    """As `right/all share`."""
    known = list(values)
    return f"{sum(known) / len(known):.3f}" if known else ""


def main() -> None:
    """Read the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--wcxb", type=Path)
    parser.add_argument("--source", action="append", help="files, guide, gnome, cld2 or wcxb; all but gnome without it")
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--wrong", action="store_true", help="list what is wrong")
    arguments = parser.parse_args()
    fetch(arguments.cache)
    sources = {
        "files": lambda: collected(arguments.cache),
        "guide": lambda: guide(arguments.cache),
        "cld2": lambda: snippets(arguments.cache),
        "gnome": lambda: gnome(arguments.cache),
        "wcxb": lambda: wcxb(arguments.wcxb) if arguments.wcxb else iter(()),
    }
    wanted = arguments.source or [name for name in sources if name != "gnome"]
    documents = [one for name in wanted for one in sources[name]()]
    programs: dict[str, Detect] = {"nephila": ours()}
    for name, make in RIVALS.items() if arguments.rivals else ():
        try:
            programs[name] = make()
        except ImportError as error:
            print(f"{name}: not installed ({error.name})")
    right: dict[str, list[bool]] = {}
    costs = {}
    for name, run in programs.items():
        run(documents[0].body)
        start = time.process_time()
        answers = [run(one.body) for one in documents]
        costs[name] = f"{1000 * (time.process_time() - start) / len(documents):.2f}"
        right[name] = [is_right(one, answer) for one, answer in zip(documents, answers, strict=True)]
        if arguments.wrong and name == "nephila":
            for one, answer, good in zip(documents, answers, right[name], strict=True):
                if not good:
                    print(f"{one.source} {one.language} {one.length} {one.encoding}: {answer}")
    _print("source, bytes", documents, right, lambda one: f"{one.source} {one.length or 'whole'}")
    _print("encoding, bytes", documents, right, lambda one: f"{one.encoding} {one.length or 'whole'}")
    print("CPU-ms per page:", ", ".join(f"{name} {cost}" for name, cost in costs.items()))


def _print(head: str, documents: list[Encoded], right: dict[str, list[bool]], key: Callable[[Encoded], str]) -> None:
    places = defaultdict(list)
    for place, one in enumerate(documents):
        places[key(one)].append(place)
    places["all"] = list(range(len(documents)))
    rows = [
        (name, len(known), *(share(right[program][place] for place in known) for program in right))
        for name, known in places.items()
    ]
    print(table((head, "pages", *right), rows), flush=True)


if __name__ == "__main__":
    main()
