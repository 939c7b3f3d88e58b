"""What the main-text model is told of every text line: its own measure, its place, its neighbours and its containers.

The base is the text-density model of the source paper P1 - text per line, smoothed by a Gaussian over the neighbouring
lines - widened by links, tags, class words, repeated templates and containers. All whole numbers, so that the core
comes to the same. Invariant: one column per name in `NAMES`, as many values as lines, each from -32768 to 32767.
O(lines + boxes + bytes).
"""

from __future__ import annotations

from typing import Final

from nephila.native._twin import words
from nephila.native._twin.boxes import CONTEXTS, Box
from nephila.native._twin.tags import TAGS, ids

MAX_LINES: Final = 1 << 16
LOOK_BYTES: Final = 256
"""Of a line its first bytes are looked at for commas, digits and the like."""
TOP: Final = 32767

GAUSS_NARROW: Final = (272, 218, 112, 37, 8, 1)
"""exp(-x²/2σ²) scaled to a sum of 1,024 on both sides, σ = 1.5 lines."""
GAUSS_WIDE: Final = (102, 99, 90, 77, 62, 47, 33, 22, 14, 8, 5, 2, 1)
"""σ = 4 lines."""
FLAT: Final = 15
"""Lines on each side of the widest window, which is flat."""

_KINDS: Final = {
    "p": 1, "li": 2, "td": 3, "th": 4, "div": 5, "h1": 6, "h2": 7, "h3": 8, "h4": 9, "h5": 10, "h6": 10, "section": 11,
    "article": 12, "blockquote": 13, "pre": 14, "dd": 15, "dt": 16, "figcaption": 17, "nav": 18, "header": 19,
    "footer": 20, "aside": 21, "form": 22, "main": 23, "ul": 24, "ol": 24, "summary": 25, "address": 27, "tr": 28,
    "table": 28,
}  # fmt: skip
_INNER: Final = {"a": 1, "span": 2, "strong": 3, "b": 3, "em": 4, "i": 4, "button": 5, "label": 6, "time": 7, "code": 8}
KIND_OF: Final = [_KINDS.get(name, 0) for name in TAGS]
INNER_OF: Final = [_INNER.get(name, 0) for name in TAGS]
_ARTICLE = ids("article")[0]
H1: Final = 6
H6: Final = 10

_DIGITS: Final = b"0123456789"
_UPPER: Final = bytes(range(65, 91))
_WIDE_STOPS: Final = tuple("。！？…”".encode()[at : at + 3] for at in range(0, 15, 3))
SHARES: Final = (
    "comment", "reply", "item", "price", "code", "review", "faq", "article", "content", "detail", "list",
)  # fmt: skip
NEAR: Final = (
    "comment", "article", "footer", "nav", "consent", "detail", "content", "hero", "faq", "reply", "review", "ads",
    "button", "join", "form", "item", "related", "carousel", "byline", "price", "post",
)  # fmt: skip
ANY: Final = (
    "consent", "article", "hidden", "header", "nav", "side", "footer", "related", "carousel", "review", "comment",
    "faq", "content", "detail", "social", "hero", "caption", "list", "byline", "button", "item", "post", "ads", "join",
)  # fmt: skip
"""Groups of class words that told anything in training; the others of words.txt told nothing."""
NEIGHBOURS: Final = (1, -1, 2, -2)
"""How many lines above (positive) or below."""
LEVELS: Final = 5

NAMES: Final = (
    "bytes", "link_share", "ends", "digits", "capitals", "signs", "kind", "inner", *words.TEXT_GROUPS,
    "depth", *(f"in_{name}" for name in CONTEXTS), *(f"near_{name}" for name in NEAR),
    *(f"any_{name}" for name in ANY), "index", "reverse", "place", "place_bytes",
    *(f"{what}{n:+d}" for what in ("bytes", "link_share", "kind") for n in NEIGHBOURS),
    *(f"{what}_{width}" for width in ("narrow", "wide", "flat") for what in ("text", "linked", "prose")),
    "like_lines", "like_bytes", "like_link_share", "like_first", "like_spread", "like_prose", "same",
    *(f"{what}_up{level}" for level in range(1, LEVELS + 1) for what in ("bytes", "link_share", "lines", "prose")),
    *(f"{what}_{q}" for q in (30, 60) for what in ("from_best", "best_lines")),
    "from_h1", "from_title", "from_heading", "heading", "heading_boiler", "page_bytes", "page_link_share", "page_lines",
    "page_prose",
    "page_line", "page_in_article", "page_in_main", "page_in_body", "page_main_bytes", "page_articles",
    *(f"page_{name}" for name in SHARES),
)  # fmt: skip

Line = list[int]
Columns = dict[str, list[int]]


def features(lines: list[Line], texts: list[bytes], boxes: list[Box], title: bytes) -> list[list[int]]:
    """One column per name, in the order of `NAMES`. `texts` are the lines' texts, at most MAX_LINES of them."""
    found: Columns = {}
    stand = [boxes[line[5]] for line in lines]
    _own(found, lines, texts, stand)
    _places(found, lines, stand)
    sums = _Sums(found, lines)
    _neighbours(found)
    _windows(found, lines, sums)
    _likes(found, lines, texts, stand, sums)
    _containers(found, lines, boxes, sums)
    _headings(found, texts, title)
    _page(found, lines, boxes, stand, sums)
    return [[min(max(value, -TOP - 1), TOP) for value in found[name]] for name in NAMES]


def share(part: int, whole: int) -> int:
    """Thousandths; 0 of nothing."""
    return part * 1000 // whole if whole else 0


def _own(found: Columns, lines: list[Line], texts: list[bytes], stand: list[Box]) -> None:
    heads = [text[:LOOK_BYTES] for text in texts]
    found["bytes"] = [line[1] for line in lines]
    found["link_share"] = [share(line[2], line[1]) for line in lines]
    found["ends"] = [_ending(text) for text in texts]
    found["digits"] = [share(len(head) - len(head.translate(None, _DIGITS)), len(head)) for head in heads]
    found["capitals"] = [share(len(head) - len(head.translate(None, _UPPER)), len(head)) for head in heads]
    found["signs"] = [len(head) - len(head.translate(None, b"|>/@")) for head in heads]
    found["kind"] = [KIND_OF[line[3]] for line in lines]
    found["inner"] = [INNER_OF[line[6]] for line in lines]
    counts = [words.of_text(head[: LOOK_BYTES // 2]) for head in heads]
    for at, name in enumerate(words.TEXT_GROUPS):
        found[name] = [count[at] for count in counts]
    found["depth"] = [box.depth for box in stand]
    for name, bit in CONTEXTS.items():
        found[f"in_{name}"] = [box.context >> bit & 1 for box in stand]
    near = [box.near() for box in stand]
    for name in NEAR:
        found[f"near_{name}"] = [bits >> words.GROUP[name] & 1 for bits in near]
    for name in ANY:
        found[f"any_{name}"] = [box.every >> words.GROUP[name] & 1 for box in stand]


def _ending(text: bytes) -> int:
    """1 as a sentence ends, 2 a colon, 3 a comma or semicolon, else 0."""
    last = text[-1:]
    if last in b".!?" or text[-3:] in _WIDE_STOPS or (last in b'")' and text[-2:-1] in (b".", b"!", b"?")):
        return 1
    return 2 if last == b":" or text[-3:] == "：".encode() else 3 if last in b",;" else 0


def _places(found: Columns, lines: list[Line], stand: list[Box]) -> None:
    count = len(lines)
    total = sum(line[1] for line in lines)
    found["index"] = list(range(count))
    found["reverse"] = [count - at for at in range(count)]
    found["place"] = [share(at, count) for at in range(count)]
    before, places = 0, []
    for line in lines:
        places.append(share(before, total))
        before += line[1]
    found["place_bytes"] = places


class _Sums:
    """Running sums over the lines: bytes, bytes in links, bytes of prose."""

    def __init__(self, found: Columns, lines: list[Line]) -> None:
        self.prose_of = [
            min(line[1], 600) if line[1] >= 80 and link < 350 else 0
            for line, link in zip(lines, found["link_share"], strict=True)
        ]
        self.bytes, self.links, self.prose = [0], [0], [0]
        for line, prose in zip(lines, self.prose_of, strict=True):
            self.bytes.append(self.bytes[-1] + line[1])
            self.links.append(self.links[-1] + line[2])
            self.prose.append(self.prose[-1] + prose)


def _neighbours(found: Columns) -> None:
    count = len(found["bytes"])
    for name in ("bytes", "link_share", "kind"):
        column = found[name]
        for n in NEIGHBOURS:
            found[f"{name}{n:+d}"] = [column[at - n] if 0 <= at - n < count else -1 for at in range(count)]


def _windows(found: Columns, lines: list[Line], sums: _Sums) -> None:
    text = [min(line[1] - line[2], 400) for line in lines]
    linked = [min(line[2], 400) for line in lines]
    for width, smooth in (("narrow", GAUSS_NARROW), ("wide", GAUSS_WIDE), ("flat", None)):
        run = _flat if smooth is None else lambda column, kernel=smooth: _gauss(column, kernel)
        texts, links = run(text), run(linked)
        found[f"text_{width}"] = texts
        found[f"linked_{width}"] = [share(b, a + b) for a, b in zip(texts, links, strict=True)]
        found[f"prose_{width}"] = run(sums.prose_of)


def _gauss(column: list[int], kernel: tuple[int, ...]) -> list[int]:
    count, side = len(column), len(kernel) - 1
    padded = [0] * side + column + [0] * side
    weights = [*kernel[:0:-1], *kernel]
    return [
        sum(w * v for w, v in zip(weights, padded[at : at + 2 * side + 1], strict=True)) >> 10 for at in range(count)
    ]


def _flat(column: list[int]) -> list[int]:
    sums, count = [0], len(column)
    for value in column:
        sums.append(sums[-1] + value)
    return [(sums[min(at + FLAT + 1, count)] - sums[max(at - FLAT, 0)]) // (2 * FLAT + 1) for at in range(count)]


def _likes(found: Columns, lines: list[Line], texts: list[bytes], stand: list[Box], sums: _Sums) -> None:
    """Of the lines that stand in the same template: how many, how long, where."""
    count = len(lines)
    alike: dict[int, list[int]] = {}
    for at, box in enumerate(stand):
        group = alike.setdefault(box.key, [0, 0, 0, 0, at, at])
        line = lines[at]
        group[0] += 1
        group[1] += line[1]
        group[2] += line[2]
        group[3] += sums.prose_of[at]
        group[5] = at
    groups = [alike[box.key] for box in stand]
    found["like_lines"] = [group[0] for group in groups]
    found["like_bytes"] = [group[1] // group[0] for group in groups]
    found["like_link_share"] = [share(group[2], group[1]) for group in groups]
    found["like_first"] = [share(group[4], count) for group in groups]
    found["like_spread"] = [(group[5] - group[4] + 1) * 10 // group[0] for group in groups]
    found["like_prose"] = [group[3] // group[0] for group in groups]
    same: dict[bytes, int] = {}
    for text in texts:
        same[text] = same.get(text, 0) + 1
    found["same"] = [same[text] for text in texts]


def _containers(found: Columns, lines: list[Line], boxes: list[Box], sums: _Sums) -> None:
    """Of the boxes around a line, and of the smallest that holds 30 % and 60 % of the prose."""
    count = len(lines)
    first, end = [count] * len(boxes), [0] * len(boxes)
    for at, line in enumerate(lines):
        box = line[5]
        first[box] = min(first[box], at)
        end[box] = at + 1
    for at in range(len(boxes) - 1, 0, -1):
        above = boxes[at].parent
        first[above] = min(first[above], first[at])
        end[above] = max(end[above], end[at])
    first[0], end[0] = 0, count
    measures = [_measure(sums, a, b) if a < b else (0, 0, 0, 0) for a, b in zip(first, end, strict=True)]
    at_level = [line[5] for line in lines]
    for level in range(1, LEVELS + 1):
        at_level = [boxes[at].parent for at in at_level]
        for place, what in enumerate(("bytes", "link_share", "lines", "prose")):
            found[f"{what}_up{level}"] = [measures[at][place] for at in at_level]
    for q in (30, 60):
        start, stop = _best(sums, first, end, q)
        found[f"from_best_{q}"] = [_outside(at, start, stop) for at in range(count)]
        found[f"best_lines_{q}"] = [share(stop - start, count)] * count


def _measure(sums: _Sums, start: int, stop: int) -> tuple[int, int, int, int]:
    size = sums.bytes[stop] - sums.bytes[start]
    return (
        size >> 3,
        share(sums.links[stop] - sums.links[start], size),
        stop - start,
        share(sums.prose[stop] - sums.prose[start], size),
    )


def _best(sums: _Sums, first: list[int], end: list[int], percent: int) -> tuple[int, int]:
    """Lines of the smallest box (of equal ones the outermost) that holds so much of all prose."""
    total = sums.prose[-1]
    start, stop = 0, len(sums.prose) - 1
    for a, b in zip(first, end, strict=True):
        if a < b and b - a < stop - start and 100 * (sums.prose[b] - sums.prose[a]) >= percent * total > 0:
            start, stop = a, b
    return start, stop


def _outside(at: int, start: int, stop: int) -> int:
    """0 inside, else lines to the near end: negative before it."""
    return at - start if at < start else at - stop + 1 if at >= stop else 0


def _headings(found: Columns, texts: list[bytes], title: bytes) -> None:
    kinds = found["kind"]
    count = len(kinds)
    h1 = next((at for at in range(count) if kinds[at] == H1), -1)
    titled = _titled(kinds, texts, title.lower())
    found["from_h1"] = [at - h1 if h1 >= 0 else -TOP for at in range(count)]
    found["from_title"] = [at - titled if titled >= 0 else -TOP for at in range(count)]
    since, level, boiler = [], [], []
    last, kind, said = -1, 0, 0
    for at in range(count):
        since.append(at - last if last >= 0 else 99)
        if H1 <= kinds[at] <= H6:
            last, kind, said = at, kinds[at], found["t_boiler"][at] + found["t_more"][at]
        level.append(kind)
        boiler.append(said)
    found["from_heading"] = since
    found["heading"] = level
    found["heading_boiler"] = boiler


def _titled(kinds: list[int], texts: list[bytes], title: bytes) -> int:
    """The first h1 that the title contains, else the first line that makes three tenths of it; -1 if none does."""
    line = -1
    for at, text in enumerate(texts):
        kind = kinds[at]
        if (line >= 0 and kind != H1) or not 8 <= len(text) <= len(title) or 10 * len(text) < 3 * len(title):
            continue
        if text.lower() in title:
            if kind == H1:
                return at
            line = at
    return line


def _page(found: Columns, lines: list[Line], boxes: list[Box], stand: list[Box], sums: _Sums) -> None:
    count, total = len(lines), sums.bytes[-1]

    def part(bit: int, of: str) -> int:
        return sum(line[1] for line, box in zip(lines, stand, strict=True) if getattr(box, of) >> bit & 1)

    nav = 1 << CONTEXTS["nav"]
    main = CONTEXTS["main"]
    in_main = sum(
        line[1] for line, box in zip(lines, stand, strict=True) if box.context >> main & 1 and not box.context & nav
    )
    values = {
        "page_bytes": total >> 3,
        "page_link_share": share(sums.links[-1], total),
        "page_lines": count,
        "page_prose": share(sums.prose[-1], total),
        "page_line": total // count if count else 0,
        "page_in_article": share(part(CONTEXTS["article"], "context"), total),
        "page_in_main": share(part(main, "context"), total),
        "page_in_body": share(part(CONTEXTS["body"], "context"), total),
        "page_main_bytes": in_main >> 3,
        "page_articles": sum(box.tag == _ARTICLE for box in boxes),
    }
    for name in SHARES:
        values[f"page_{name}"] = share(part(words.GROUP[name], "every"), total)
    for name, value in values.items():
        found[name] = [value] * count
