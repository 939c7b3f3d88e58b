"""Markdown of small pages beside what another reader makes of them: formulas, notes, code, hidden parts, tables.

usage: python -m benchmarks.bench_markdown_pages [ARCHIVE] [--worst 20] [--show NAME]

ARCHIVE (default: fixtures.tar.xz of defuddle-fixtures in the conformance data) has fixtures/NAME.html and
expected/NAME.md of kepano/defuddle (MIT). F1 is of words, the mean of all pages. Headings and lines of code are shares
of those expected; a heading counts by its words. Formulas and notes: shares of the formulas and note texts expected.
Its choices are one reader's: 1.0 is no aim.
"""

from __future__ import annotations

import argparse
import re
import tarfile
from collections import Counter
from pathlib import Path

from nephila.parser.single.extract import extract

from tests.acceptance import locate

URL = re.compile(r'"url":\s*"([^"]+)"')
FENCE = re.compile(r"^ *(?:> ?)*(`{3,}).*?\n(.*?)\n *(?:> ?)*\1 *$", re.M | re.S)
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$\n]+?)\$", re.S)
NOTE = re.compile(r"^\[\^[^\]]+\]: (.+)$", re.M)
KINDS = ("headings", "code lines", "formulas", "notes")


def words(text: str) -> Counter[str]:
    """Letters and digits, without the addresses of links and pictures."""
    return Counter(re.findall(r"\w+", re.sub(r"\]\([^)\s]*\)", "] ", text).lower()))


def parts(text: str) -> dict[str, Counter[str]]:
    """What is counted of a Markdown text, by kind."""
    code = [line.strip("> ") for fence in FENCE.findall(text) for line in fence[1].split("\n")]
    rest = FENCE.sub("", text)
    plain = [" ".join(re.findall(r"\w+", line)) for line in re.findall(r"^ *(?:[-*>] )*#{1,6} +(.+)$", rest, re.M)]
    formulas = ["".join((block or line).split()) for block, line in FORMULA.findall(rest)]
    notes = [" ".join(re.findall(r"\w+", note)) for note in NOTE.findall(rest)]
    found = (plain, [line for line in code if line], formulas, notes)
    return {kind: Counter(filter(None, some)) for kind, some in zip(KINDS, found, strict=True)}


def f1(ours: Counter[str], right: Counter[str]) -> float:
    """Of two bags of words; 1 for two empty ones."""
    same, size = (ours & right).total(), ours.total() + right.total()
    return 2 * same / size if size else 1.0


def pages(archive: Path) -> dict[str, tuple[str, str]]:
    """Name → HTML and expected Markdown."""
    with tarfile.open(archive) as files:
        texts = {
            member.name: file.read().decode()
            for member in files.getmembers()
            if (file := files.extractfile(member) if member.isfile() else None)
        }
    names = sorted(Path(name).stem for name in texts if name.endswith(".html"))
    found = {}
    for name in names:
        right = next(text for path, text in texts.items() if path.endswith(f"expected/{name}.md"))
        html = next(text for path, text in texts.items() if path.endswith(f"fixtures/{name}.html"))
        found[name] = (html, right.partition("\n```\n")[2].strip())
    return found


def main() -> None:
    """Read the arguments and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path, nargs="?")
    parser.add_argument("--worst", type=int, default=10, help="pages printed by name")
    parser.add_argument("--show", default="", help="print both texts of this page")
    arguments = parser.parse_args()
    archive = arguments.archive or locate() / "defuddle-fixtures" / "fixtures.tar.xz"
    scores: dict[str, float] = {}
    right_of = dict.fromkeys(KINDS, 0)
    had = dict(right_of)
    lost: dict[str, list[str]] = {}
    for name, (html, right) in pages(archive).items():
        stated = URL.search(html[:2000])
        url = stated[1] if stated else f"https://fixtures.example/{name}"
        ours = extract(html.encode(), url, "text/html", "utf-8", markdown=True).get("markdown", "")
        if name == arguments.show:
            print(f"{ours}\n\n======== expected\n\n{right}")
        scores[name] = f1(words(ours), words(right))
        mine, expected = parts(ours), parts(right)
        for kind in KINDS:
            right_of[kind] += expected[kind].total()
            had[kind] += (mine[kind] & expected[kind]).total()
            if missing := expected[kind] - mine[kind]:
                lost.setdefault(name, []).append(f"{missing.total()} {kind}")
    for name in sorted(scores, key=scores.__getitem__)[: arguments.worst]:
        print(f"{scores[name]:.3f} {name}: {', '.join(lost.get(name, []))}")
    for name, what in lost.items():
        if arguments.worst > len(scores):
            print(f"      {name}: {', '.join(what)}")
    print(f"pages {len(scores)}  word F1 {sum(scores.values()) / len(scores):.3f}  ", end="")
    print("  ".join(f"{kind} {had[kind] / max(right_of[kind], 1):.3f} of {right_of[kind]}" for kind in KINDS))


if __name__ == "__main__":
    main()
