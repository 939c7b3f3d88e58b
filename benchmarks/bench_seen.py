"""The seen test beside its rivals: ns of CPU per insert, hit and miss in batches of 50, bytes a key, false positives.

Each runs in a process of its own, with the same keys: uniform, or hosts by Zipf's law (100,000 hosts, exponent 1.04:
the largest has a tenth of all keys), each key of a batch from any host, which is harder than a page. Bytes a key are
the growth of the process. Hits and misses are the least of three rounds where a round is short.
From the root: python -m benchmarks.bench_seen
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import report
from benchmarks.measure import resident_bytes
from benchmarks.seen_rivals import RIVALS, Absent

HOSTS = 100_000
EXPONENT = 1.04
CHUNK = 2000
"""Batches made at a time, before the clock runs."""
ASKED = 1_000_000
"""Keys asked for, of each kind."""


def uniform(keys: int, batch: int, seed: int) -> Iterator[bytes]:
    """Batches of random keys."""
    rng = random.Random(seed)
    for _ in range(keys // batch):
        yield rng.randbytes(16 * batch)


def zipf(keys: int, batch: int, seed: int) -> Iterator[bytes]:
    """Batches of keys whose first four bytes are those of hosts, few of which have most of the keys."""
    rng, names = random.Random(seed), random.Random(1)
    hosts = [names.randbytes(4) for _ in range(HOSTS)]
    weights = list(itertools.accumulate((rank + 1) ** -EXPONENT for rank in range(HOSTS)))
    for _ in range(keys // batch // 100):
        chosen = rng.choices(hosts, cum_weights=weights, k=100 * batch)
        for start in range(0, 100 * batch, batch):
            rest = rng.randbytes(12 * batch)
            yield b"".join(chosen[start + n] + rest[12 * n : 12 * n + 12] for n in range(batch))


STREAMS: dict[str, Callable[[int, int, int], Iterator[bytes]]] = {"uniform": uniform, "zipf": zipf}


def least(rounds: int, rival: Any, batches: list[Any]) -> tuple[float, int]:
    """CPU seconds of asking for all batches, the least of some rounds; and how many keys were said to be there."""
    best, known = float("inf"), 0
    for _ in range(rounds):
        start, known = rival.cpu_s(), 0
        for one in batches:
            known += rival.ask(one)
        best = min(best, rival.cpu_s() - start)
    return best, known


def contest(name: str, stream: str, keys: int, batch: int) -> dict[str, Any]:
    """One row: everything that is measured of one rival."""
    try:
        rival = RIVALS[name](keys)
    except Absent as absent:
        return {"absent": str(absent)}
    before, spent, sample, number = resident_bytes(), 0.0, [], 0
    every = max(1, keys // ASKED)
    source = STREAMS[stream](keys, batch, 3)
    while buffers := list(itertools.islice(source, CHUNK)):
        batches = [rival.prepare(buffer) for buffer in buffers]
        start = rival.cpu_s()
        for one in batches:
            rival.insert(one)
        spent += rival.cpu_s() - start
        sample += [buffer for number, buffer in enumerate(buffers, number) if number % every == 0]
        number += len(buffers)
        del batches, buffers
    inserted = number * batch
    grown = resident_bytes() - before - sum(map(sys.getsizeof, sample))
    memory = rival.memory(grown)
    random.Random(4).shuffle(sample)
    hits, known = least(rival.rounds, rival, [rival.prepare(buffer) for buffer in sample])
    if known != len(sample) * batch:
        raise SystemExit(f"{name}: {len(sample) * batch - known} keys were forgotten")
    strangers = [rival.prepare(buffer) for buffer in STREAMS[stream](min(keys, ASKED), batch, 99)]
    misses, false = least(rival.rounds, rival, strangers)
    row = {
        "keys": inserted,
        "insert_ns": spent / inserted * 1e9,
        "hit_ns": hits / (len(sample) * batch) * 1e9,
        "miss_ns": misses / (len(strangers) * batch) * 1e9,
        "bytes_per_key": memory / inserted,
        "false_positives_pct": 100 * false / (len(strangers) * batch),
        **rival.more(),
    }
    rival.close()
    return row


def alone(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run in a process of its own, so that memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


COLUMNS = ("insert_ns", "hit_ns", "miss_ns", "bytes_per_key", "false_positives_pct")


def show(rows: dict[str, dict[str, Any]]) -> str:
    """The table of one stream and size."""
    lines: list[list[object]] = []
    for name, row in rows.items():
        if "absent" in row:
            lines.append([f"{name}: {row['absent']}", *["-"] * (len(COLUMNS) + 1)])
            continue
        disk = row.get("disk_bytes_per_key", row.get("disk_bytes", 0) / row["keys"])
        lines.append([name, *(float(row[column]) for column in COLUMNS), float(disk)])
    return report.table(["", "insert ns", "hit ns", "miss ns", "B a key", "false %", "disk B"], lines)


def claim(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Time of each rival as a multiple of the trie's."""
    trie, lines = rows.get("trie", {"absent": ""}), []
    if "absent" in trie:
        return []
    for name, row in rows.items():
        if name.startswith(("Python", "Bloom")) and "absent" not in row:
            ratios = (f"{what} {row[f'{what}_ns'] / trie[f'{what}_ns']:.2f}" for what in ("insert", "hit", "miss"))
            lines.append(f"  {name}, time / trie's: {', '.join(ratios)}")
    return lines


def clustered(results: list[dict[str, Any]]) -> list[str]:
    """What hosts by Zipf's law cost the trie beside uniform keys of the same number."""
    tries = {(one["keys"], one["stream"]): one["rows"].get("trie", {"absent": ""}) for one in results}
    lines = []
    for (keys, stream), row in tries.items():
        base = tries.get((keys, "uniform"))
        if stream != "uniform" and base and "absent" not in {**base, **row}:
            ratios = (f"{what} {row[f'{what}_ns'] / base[f'{what}_ns']:.2f}" for what in ("insert", "hit", "miss"))
            lines.append(f"trie, {keys:,} keys, {stream} / uniform: {', '.join(ratios)}")
    return lines


def main() -> None:
    """Read the arguments, run everybody, print the tables and save the raw result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", default="1000000,20000000", help="sizes, with commas between")
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--streams", default="uniform,zipf")
    parser.add_argument("--rivals", default=",".join(RIVALS), help="names from the table, with commas between")
    parser.add_argument("--no-save", action="store_true")
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    for keys, stream in itertools.product(map(int, arguments.keys.split(",")), arguments.streams.split(",")):
        rows: dict[str, dict[str, Any]] = {}
        for name in (name for name in RIVALS if name in arguments.rivals.split(",")):
            rows[name] = alone(contest, name, stream, keys, arguments.batch)
        print(f"\n{keys:,} keys, {stream}, batches of {arguments.batch}; CPU ns per key\n{show(rows)}")
        print("\n".join(claim(rows)), flush=True)
        results.append({"keys": keys, "stream": stream, "batch": arguments.batch, "rows": rows})
    print("\n".join(clustered(results)))
    if not arguments.no_save:
        versions = report.versions("nephila", "rbloom")
        print(report.save("seen", {"versions": versions, "results": results}).name)


if __name__ == "__main__":
    main()
