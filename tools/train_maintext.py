"""Train the main-text model (maintext.txt and class_words.txt in services/nephila/native) and say what it reaches on
sites it has not seen.

    python -m tools.train_maintext ../shared/data/wcxb-dev [--articles test-pages.tar.xz] [--documentation CACHE]
        [--segments DIRECTORY] [--fixtures fixtures.tar.xz] [--answers FILE] [--folds 5] [--seed 1] [--aside]
        [--unseen-types] [--write]

Each text line is an example: main text if its words stand in the page's truth, weighing what its words weigh in the
page's F1; a second copy of a line that is main text weighs nothing. Class words have scores that are learnt as well
(tools/class_words.py), for each page without its own site. Sites are cut into folds; every page is answered
by a model that saw no page of its site, and the word-F1 of those answers is printed by page type. --articles names
Readability's test pages, --fixtures Defuddle's, --segments pages of which segments are marked, mostly in other
languages than English (tools/segment_labels.py, needs trafilatura), --documentation a cache directory for Debian's
documentation packages, which are never asked about. --answers writes the answers of the folds for
benchmarks/bench_quality.py. --aside keeps a fifth of the sites out of everything but one last question.
--unseen-types asks of each page type a model that saw none of it. With --write a model of all pages replaces both
files: build the core again after that. Symmetric trees by CatBoost (`pip install catboost numpy`), rounded to whole
numbers. Some CPU-minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import struct
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from catboost import CatBoostClassifier
from nephila.native import sniff_encoding
from nephila.native._core import MODEL_FEATURES, main_text_by, training_table
from nephila.parser.page.charset import encoding_of

from benchmarks import documentation_truth
from benchmarks.maintext_truth import ASIDE, TruePage, aside, defuddle, f1, fold, means, pages, readability, site, words
from benchmarks.segment_truth import SegmentPage, counts, score, segment_pages
from tools import class_words
from tools.segment_labels import labelled

TARGET = Path(__file__).parents[1] / "services/nephila/native/maintext.txt"
SETTINGS: dict[str, Any] = {
    "iterations": 250, "depth": 4, "learning_rate": 0.1, "rsm": 0.3, "l2_leaf_reg": 30, "border_count": 64,
    "random_seed": 1, "thread_count": 2, "verbose": 0, "allow_writing_files": False,
}  # fmt: skip
LIGHT = 0.3
"""Of lines that weigh less a fifth is taken, each for five."""
LEAST_WORDS, MOST_WORDS = 60, 200
"""A shorter truth weighs as one of so many words; a longer line as one of so many."""
ENTRIES = 60
"""Entries of the table of chances on each side of even odds."""


STEP = 100
"""Thousandths of log-odds from one entry of the table of chances to the next, as in core/src/maintext/forest.rs."""
TOP = 32767
"""The largest value of a feature."""
RARE_TYPES = frozenset({"collection", "documentation", "forum", "listing", "product", "service"})
RARE_WEIGHT = 2
"""Pages that are no article weigh so much more: there are four articles to each."""
CAUTION = 200
"""Thousandths of log-odds that are taken from each line: most loss is surplus text."""
ONCE = 32
"""Bytes of a line of which a copy is recognised by its text, as in core/src/maintext/mod.rs."""


class Example(NamedTuple):
    """One page as the model sees it: a row of features, a label and a weight per line."""

    page: TruePage
    encoding: str
    rows: Any
    labels: Any
    weights: Any
    boxes: class_words.Boxes
    shares: dict[bytes, float]


class Model(NamedTuple):
    """Trees, and the shares of class words by which their columns of scores are computed."""

    trees: CatBoostClassifier
    sums: class_words.Sums


def example(page: TruePage) -> Example:
    """Scan a page and label its lines."""
    encoding = encoding_of(page.body, "", sniff_encoding)
    text, packed, packed_boxes, columns, attributes = training_table(page.body, encoding)
    rows = np.frombuffer(columns, "<i2").reshape(len(MODEL_FEATURES), -1).T.astype(np.float32)
    found = list(struct.iter_unpack("<IIIHHII", packed))[: len(rows)]
    lines = [text[start : start + size] for start, size, *_ in found]
    parents = [parent for parent, *_ in struct.iter_unpack("<IIIIIQ", packed_boxes)]
    boxes = class_words.Boxes(parents, [class_words.words_of(one) for one in attributes], [one[5] for one in found])
    split = [words(line.decode("utf-8", "replace")) for line in lines]
    truth = words(page.text)
    sizes = np.array([min(len(line), MOST_WORDS) for line in split], float)
    said = np.array(labels(split, truth, page.text)) > 0.5
    weights = np.where(copies(lines, said), 0.0, sizes / max(len(truth), LEAST_WORDS) + 1e-5)
    if page.kind in RARE_TYPES:
        weights *= RARE_WEIGHT
    return Example(page, encoding, rows, said, weights, boxes, class_words.shares(boxes, said, weights))


def copies(lines: list[bytes], said: Any) -> list[bool]:
    """Which lines are no example: the truth has another line of the same text, so either may be taken for it."""
    there = {line for line, one in zip(lines, said, strict=True) if one and len(line) >= ONCE}
    return [not one and line in there for line, one in zip(lines, said, strict=True)]


def labels(lines: list[list[str]], truth: list[str], text: str) -> list[float]:
    """Share of each line's words that stand in the truth, in order, in runs of up to four.

    Of lines that occur oftener than in the truth those count that stand among others that do: a headline in a menu is
    no main text. A word or two by chance is none either.
    """
    grams = [Counter(zip(*(truth[at:] for at in range(n)), strict=False)) for n in range(5)]
    whole = Counter(tuple(words(line)) for line in text.split("\n"))
    cover = [_cover(line, grams) for line in lines]
    support = [_support(at, lines, cover) for at in range(len(lines))]
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, line in enumerate(lines):
        if cover[at] > 0.5:
            alike[tuple(line)].append(at)
    found = [0.0] * len(lines)
    for line, places in alike.items():
        n = min(len(line), 4)
        times = max(1, min(grams[n][line[at : at + n]] for at in range(len(line) - n + 1)))
        for at in sorted(places, key=lambda place: -support[place])[:times]:
            if len(line) > 2 or support[at] >= 0.15 or line in whole:
                found[at] = cover[at]
    return found


def _cover(line: list[str], grams: list[Counter[tuple[str, ...]]]) -> float:
    n = min(len(line), 4)
    hit: set[int] = set()
    for at in range(len(line) - n + 1):
        if n and tuple(line[at : at + n]) in grams[n]:
            hit.update(range(at, at + n))
    return len(hit) / len(line) if line else 0.0


def _support(at: int, lines: list[list[str]], cover: list[float]) -> float:
    """How much of what stands within six lines is in the truth; the next two lines count twice."""
    right = every = 0
    for other in range(max(0, at - 6), min(len(lines), at + 7)):
        if other != at:
            size = min(len(lines[other]) * (1 if abs(other - at) > 2 else 2), 40)
            every += size
            right += size * (cover[other] > 0.6 and len(lines[other]) >= 4)
    return right / every if every else 0.0


def with_scores(one: Example, sums: class_words.Sums, own: dict[bytes, float]) -> Any:
    """The features of a page with scores of class words by `sums` without its own site, whose shares are `own`."""
    scores = class_words.columns(one.boxes, class_words.scorer(sums, own))
    return np.hstack([one.rows[:, : -len(class_words.COLUMNS)], scores])


def fit(examples: list[Example]) -> Model:
    """A model of these pages."""
    known = [one for one in examples if len(one.rows)]
    sites = class_words.by_site((site(one.page), one.shares) for one in known)
    sums = class_words.total(sites)
    rows = np.concatenate([with_scores(one, sums, sites.get(site(one.page), {})) for one in known])
    said, weights = (np.concatenate([one[at] for one in known]) for at in (3, 4))
    weights *= len(weights) / weights.sum()
    kept = (weights > LIGHT) | (np.random.default_rng(1).random(len(weights)) < 0.2)
    weights = np.where(weights > LIGHT, weights, 5 * weights)
    trees = CatBoostClassifier(**SETTINGS)
    return Model(trees.fit(rows[kept], said[kept].astype(int), sample_weight=weights[kept]), sums)


def answer(model: Model, one: Example) -> str:
    """The main text by a model that is not written yet: the core does with its scores what it does with its own."""
    if not len(one.rows):
        return ""
    found = model.trees.predict(with_scores(one, model.sums, {}), prediction_type="RawFormulaVal")
    scores = np.floor(1000 * found).astype(int) - CAUTION
    return main_text_by(one.page.body, one.encoding, scores.tolist()).decode()


def segment_examples(directory: Path, teacher: Model) -> tuple[list[Example], list[SegmentPage]]:
    """The pages of which segments are marked, as `teacher` and trafilatura label what is not marked."""
    from trafilatura import extract

    marked = list(segment_pages(directory))
    examples = []
    for page in marked:
        sample = example(TruePage(page.id, page.url, "segments", page.body, ""))
        if len(sample.rows):
            lines = lines_of(sample.page.body, sample.encoding)
            split = [words(line) for line in lines]
            answers = [answer(teacher, sample), extract(page.body) or ""]
            first, second = ([share > 0.5 for share in labels(split, words(text), text)] for text in answers)
            size = max(len(words(answers[0])), LEAST_WORDS)
            weights = np.array([min(len(line), MOST_WORDS) / size + 1e-5 for line in split])
            truth, weights = labelled(page, lines, first, second, weights, answers[0])
            shares = class_words.shares(sample.boxes, truth, weights)
            sample = sample._replace(labels=truth, weights=weights, shares=shares)
        examples.append(sample)
    return examples, marked


def lines_of(body: bytes, encoding: str) -> list[str]:
    """The text lines of a page."""
    text, packed, *_ = training_table(body, encoding)
    rows = struct.iter_unpack("<IIIHHII", packed)
    return [text[start : start + size].decode("utf-8", "replace") for start, size, *_ in rows]


def table(model: CatBoostClassifier) -> str:
    """The model as rows of maintext.txt."""
    scale, bias = model.get_scale_and_bias()
    chances = [round(1024 / (1 + math.exp(-at * STEP / 1000))) for at in range(-ENTRIES, ENTRIES + 1)]
    rows = [
        "# The main-text model, written by tools/train_maintext.py; the layout is in core/build.rs (forest).",
        f"features: {' '.join(MODEL_FEATURES)}",
        f"bias: {round(1000 * bias) - CAUTION}",
        f"chances: {' '.join(map(str, chances))}",
    ]
    depth = SETTINGS["depth"]
    for tree in exported(model)["oblivious_trees"]:
        leaves = [round(1000 * scale * leaf) for leaf in tree["leaf_values"]]
        levels = [f"{MODEL_FEATURES[at['float_feature_index']]}>{math.floor(at['border'])}" for at in tree["splits"]]
        levels += [f"{MODEL_FEATURES[0]}>{TOP}"] * (depth - len(levels))
        leaves += [0] * (2**depth - len(leaves))
        rows.append(f"{' '.join(levels)}: {' '.join(map(str, leaves))}")
    return "\n".join(rows) + "\n"


def exported(model: CatBoostClassifier) -> dict[str, Any]:
    """CatBoost's JSON of a model."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "model.json")
        model.save_model(str(path), format="json")
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found


def said_of(model: Model, asked: list[Example]) -> list[tuple[str, float]]:
    """Type and F1 of each page."""
    return [(one.page.kind, f1(one.page.text, answer(model, one))) for one in asked]


def cross_validated(known: list[Example], articles: list[Example], folds: int) -> dict[str, str]:
    """The answer to every page of `known` by a model that saw no page of its site."""
    answers = {}
    for part in range(folds):
        inside = [fold(one.page.url or one.page.id, folds) == part for one in known]
        model = fit([*(one for one, here in zip(known, inside, strict=True) if not here), *articles])
        answers |= {one.page.id: answer(model, one) for one, here in zip(known, inside, strict=True) if here}
    return answers


def unseen_types(known: list[Example], articles: list[Example]) -> list[tuple[str, float]]:
    """Every page by a model that saw no page of its type."""
    scores = []
    for kind in sorted({one.page.kind for one in known}):
        others = [one for one in known if one.page.kind != kind]
        model = fit(others if kind == "article" else others + articles)
        scores += said_of(model, [one for one in known if one.page.kind == kind])
    return scores


def tell(name: str, scores: list[tuple[str, float]]) -> None:
    """One line: F1 by type."""
    print(f"{name}, {len(scores)} pages: " + " ".join(f"{k} {v:.3f}" for k, v in means(scores).items()), flush=True)


def main() -> None:
    """Cross-validate, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--articles", type=Path)
    parser.add_argument("--documentation", type=Path)
    parser.add_argument("--segments", type=Path)
    parser.add_argument("--fixtures", type=Path)
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--folds", type=int, default=5, help="0: none")
    parser.add_argument("--seed", type=int, default=SETTINGS["random_seed"])
    parser.add_argument("--aside", action="store_true")
    parser.add_argument("--unseen-types", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    SETTINGS["random_seed"] = arguments.seed
    known = [example(page) for page in pages(arguments.directory)]
    articles = [example(page) for page in readability(arguments.articles)] if arguments.articles else []
    articles += [example(page) for page in defuddle(arguments.fixtures)] if arguments.fixtures else []
    manuals: list[Example] = []
    if arguments.documentation:
        documentation_truth.fetch(arguments.documentation, documentation_truth.TRAINING)
        manuals += [example(page) for page in documentation_truth.true_pages(arguments.documentation)]
    marked: list[Example] = []
    if arguments.segments:
        marked, segments = segment_examples(arguments.segments, fit(known + articles + manuals))
    kept = [one for one in known if not (arguments.aside and aside(one.page))]
    if arguments.folds:
        answers = cross_validated([*kept, *articles, *marked], manuals, arguments.folds)
        tell("sites not seen", [(one.page.kind, f1(one.page.text, answers[one.page.id])) for one in kept + articles])
        if arguments.answers:
            arguments.answers.write_text(json.dumps(answers), "utf-8")
        if marked:
            print(f"segments, sites not seen: {score(counts(page, answers[page.id]) for page in segments)}", flush=True)
    articles += manuals + marked
    if arguments.unseen_types:
        tell("types not seen", unseen_types(kept, articles))
    if arguments.aside:
        tell(
            f"one site in {ASIDE}, kept aside", said_of(fit(kept + articles), [one for one in known if aside(one.page)])
        )
    if arguments.write:
        model = fit(known + articles)
        TARGET.write_text(table(model.trees), "utf-8")
        class_words.write(model.sums)
        print(f"written: {TARGET}")


if __name__ == "__main__":
    main()
