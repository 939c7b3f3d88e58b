"""The chunks that answer a question best, by BM25 (Robertson and Zaragoza 2009): `ask.py chunks.jsonl WORDS`.

A system with embeddings reads the same file: `id` changes when the text of a chunk does, so only new ids are embedded.
"""

import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

K, B = 1.2, 0.75


def words(text):
    """Words in lower case."""
    return re.findall(r"\w+", text.lower())


def main():
    """Prints the three best chunks, each with its place."""
    path, question = sys.argv[1], words(" ".join(sys.argv[2:]))
    chunks = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    counts = [Counter(words(" ".join([*chunk["headings"], chunk["text"]]))) for chunk in chunks]
    average = sum(count.total() for count in counts) / max(len(counts), 1)
    rarity = {}
    for word in question:
        holding = sum(word in count for count in counts)
        rarity[word] = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))

    def score(count):
        length = K * (1 - B + B * count.total() / average)
        return sum(rarity[word] * count[word] * (K + 1) / (count[word] + length) for word in question)

    best = sorted(zip(map(score, counts), chunks, strict=True), key=lambda pair: -pair[0])[:3]
    for points, chunk in best:
        if points > 0:
            print(f"{points:.2f}  {chunk['url']}  {' > '.join(chunk['headings'])}")
            print("      " + " ".join(chunk["text"].split())[:200])
    if not any(points > 0 for points, _ in best):
        sys.exit("no chunk has these words")


if __name__ == "__main__":
    main()
