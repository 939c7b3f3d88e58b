"""Near-duplicates: time of the simhash per page, look-ups and bytes of the index, precision and recall by threshold.

The pages are generated: articles of random words by Zipf's law, each with copies in which a share of the words is
replaced, cut or inserted, and with unrelated articles on the same few subjects. A pair counts as a copy when at most a
tenth of its words were changed. Changes lie in runs of words, as edited sentences and templates, or are scattered
single words, each of which changes three shingles. From the root: python -m benchmarks.bench_near_duplicates [--plot
FILE]
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from pathlib import Path
from typing import NamedTuple

from nephila.native import NearCopyIndex, page_pass, simhash

from benchmarks import report

SIZES = (1_000_000, 10_000_000)
LOOKUPS = 20_000
ARTICLES = 1500
CHANGED = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Shares of words that a copy changes."""
COPY_SHARE = 0.1
"""Greatest share of changed words with which a page counts as a copy."""
KINDS = {"in runs of 1 to 20": False, "scattered": True}
SUBJECTS = 20
THRESHOLDS = range(17)


class Pair(NamedTuple):
    """Two pages, and how they differ."""

    bits: int
    changed: float
    """Share of changed words; 1 of unrelated pages."""
    scattered: bool = False
    """The changed words are scattered, not in runs."""


def vocabulary(rng: random.Random, words: int = 20_000) -> list[str]:
    """Words of 2 to 11 letters."""
    return ["".join(rng.choices("etaoinshrdlucmfwypvbgkjqxz", k=rng.randint(2, 11))) for _ in range(words)]


def article(rng: random.Random, words: list[str], subject: list[str], length: int) -> list[str]:
    """Words by Zipf's law, a third of them of the subject."""
    weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(words))))
    found = rng.choices(words, cum_weights=weights, k=length)
    return [rng.choice(subject) if rng.random() < 1 / 3 else word for word in found]


def changed(rng: random.Random, text: list[str], words: list[str], share: float) -> list[str]:
    """A copy: `share` of its words in runs of 1 to 20 replaced, removed or inserted, as editors and templates do."""
    result, left = list(text), round(len(text) * share)
    while left > 0:
        run = min(left, rng.randint(1, 20), len(result))
        at = rng.randrange(len(result) - run + 1)
        new = rng.choices(words, k=run)
        match rng.randrange(3):
            case 0:
                result[at : at + run] = new
            case 1 if len(result) > 2 * run:
                del result[at : at + run]
            case _:
                result[at:at] = new
        left -= run
    return result


def scattered(rng: random.Random, text: list[str], words: list[str], share: float) -> list[str]:
    """A copy: `share` of its words replaced, each by itself."""
    result = list(text)
    for at in rng.sample(range(len(text)), round(len(text) * share)):
        result[at] = rng.choice(words)
    return result


def pairs(seed: int) -> list[Pair]:
    """Known copies and unrelated pages of the same subject."""
    rng, apart = random.Random(seed), random.Random(seed + 1)
    words = vocabulary(rng)
    subjects = [rng.sample(words, 200) for _ in range(SUBJECTS)]
    found: list[Pair] = []
    last: dict[int, int] = {}
    for number in range(ARTICLES):
        subject = number % SUBJECTS
        text = article(rng, words, subjects[subject], rng.randint(150, 2500))
        original = hash_of(text)
        found += [Pair((original ^ hash_of(changed(rng, text, words, one))).bit_count(), one) for one in CHANGED]
        for one in CHANGED:
            copy = scattered(apart, text, words, one)
            found.append(Pair((original ^ hash_of(copy)).bit_count(), one, scattered=True))
        if subject in last:
            found.append(Pair((original ^ last[subject]).bit_count(), 1.0))
        last[subject] = original
    return found


def hash_of(text: list[str]) -> int:
    """The simhash of words."""
    return simhash(" ".join(text).encode())


def page_of(rng: random.Random, size_bytes: int = 80_000) -> bytes:
    """An HTML page of this size: a sixth of it is text."""
    words = vocabulary(rng, 5000)
    paragraphs = []
    while sum(map(len, paragraphs)) < size_bytes:
        text = " ".join(rng.choices(words, k=60))
        paragraphs.append(f'<p class="{"c" * 300}" data-x="{"y" * 1600}">{text}.</p>\n')
    return f"<html><title>t</title><body><article>{''.join(paragraphs)}</article></body></html>".encode()


def time_of_hash() -> None:
    """µs per page of 80 KB, least of many rounds."""
    rng = random.Random(1)
    body = page_of(rng)
    found = page_pass(body, "http://a.test/", "utf-8", max_links=1000, max_text_bytes=10**7, agent="x")
    chinese = "".join(chr(rng.randrange(0x4E00, 0x6000)) for _ in range(5000)).encode()
    rows = []
    for name, text in (("main text of a page of 80 KB", found.main_text or found.text), ("Chinese", chinese)):
        rows.append((name, f"{len(text):,}", f"{least(lambda text=text: simhash(text), 300) * 1e6:.1f}"))
    print(report.table(["text", "bytes", "µs"], rows))


def least(call: object, rounds: int) -> float:
    """Least time of a call in seconds."""
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        call()  # type: ignore[operator]
        best = min(best, time.perf_counter() - began)
    return best


def time_of_lookups(entries: int) -> tuple[str, ...]:
    """Fill an index with random simhashes, then look up some of them with 0 to 3 changed bits, and unknown ones."""
    rng = random.Random(2)
    index = NearCopyIndex(entries)
    kept = []
    began = time.process_time()
    for number in range(entries):
        value, page = rng.getrandbits(64), number & 0xFFFFF
        index.add(value, page)
        if number % (entries // LOOKUPS) == 0:
            kept.append((value, page))
    added_s = (time.process_time() - began) / entries
    known = [(flipped(rng, value, number % 4), page) for number, (value, page) in enumerate(kept)]
    began = time.process_time()
    answers = [index.near(value, 3) for value, _ in known]
    hit_s = (time.process_time() - began) / len(known)
    recall = sum(page in {one for _, one in found} for (_, page), found in zip(known, answers, strict=True))
    unknown = [rng.getrandbits(64) for _ in range(LOOKUPS)]
    began = time.process_time()
    wrong = sum(len(index.near(value, 3)) for value in unknown)
    miss_s = (time.process_time() - began) / len(unknown)
    return (
        f"{entries:,}",
        f"{added_s * 1e6:.2f}",
        f"{hit_s * 1e6:.2f}",
        f"{miss_s * 1e6:.2f}",
        f"{index.nbytes / entries:.1f}",
        f"{100 * recall / len(known):.1f} %",
        f"{wrong / len(unknown):.4f}",
    )


def flipped(rng: random.Random, value: int, bits: int) -> int:
    """The value with so many bits changed."""
    for bit in rng.sample(range(64), bits):
        value ^= 1 << bit
    return value


def curve(found: list[Pair]) -> list[tuple[int, float, float]]:
    """(threshold, precision, recall)."""
    copies = sum(pair.changed <= COPY_SHARE for pair in found)
    result = []
    for threshold in THRESHOLDS:
        near = [pair for pair in found if pair.bits <= threshold]
        right = sum(pair.changed <= COPY_SHARE for pair in near)
        result.append((threshold, right / len(near) if near else 1.0, right / copies))
    return result


def recalls(found: list[Pair], apart: bool) -> list[str]:
    """Share of copies within 3 bits, by share of changed words."""
    of_kind = [pair for pair in found if pair.scattered == apart]
    return [f"{sum(one.bits <= 3 for one in of_kind if one.changed == share) / ARTICLES:.1%}" for share in CHANGED]


def plot(rows: list[tuple[int, float, float]], found: list[Pair], path: Path) -> None:
    """The curve, and recall by share of changed words."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4))
    left.plot([row[0] for row in rows], [row[1] for row in rows], label="precision")
    left.plot([row[0] for row in rows], [row[2] for row in rows], label="recall")
    left.axvline(3, color="grey", linewidth=0.8, linestyle=":")
    left.set(xlabel="threshold, bits", ylim=(0, 1.05), title="copies with ≤ 10 % changed words")
    left.legend()
    for share in CHANGED:
        of_share = [pair.bits for pair in found if pair.changed == share and not pair.scattered]
        recall = [sum(bits <= threshold for bits in of_share) / len(of_share) for threshold in THRESHOLDS]
        right.plot(list(THRESHOLDS), recall, label=f"{share:.0%}")
    right.axvline(3, color="grey", linewidth=0.8, linestyle=":")
    right.set(xlabel="threshold, bits", ylim=(0, 1.05), title="found, by share of changed words")
    right.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options = parser.parse_args()
    time_of_hash()
    print()
    head = ["entries", "add µs", "look-up µs (known)", "(unknown)", "bytes each", "found", "wrong candidates each"]
    print(report.table(head, [time_of_lookups(size) for size in options.sizes]))
    print()
    found = pairs(3)
    rows = curve([pair for pair in found if not pair.scattered])
    print(report.table(["threshold", "precision", "recall"], [(str(t), f"{p:.3f}", f"{r:.3f}") for t, p, r in rows]))
    print()
    print("found with threshold 3, by share of changed words:")
    head = ["changed words", *(f"{share:.0%}" for share in CHANGED)]
    print(report.table(head, [(name, *recalls(found, apart)) for name, apart in KINDS.items()]))
    if options.plot is not None:
        plot(rows, found, options.plot)


if __name__ == "__main__":
    main()
