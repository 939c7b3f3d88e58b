"""One frozen sample of every format: `python -m tests.formats.samples` (make samples) writes them again.

    tests/data/formats/crawl.tar.xz   a killed crawl: commit log, snapshot, host store, seen URLs, tables, run.json
    tests/data/formats/crawl.json     the values that are in it
    tests/data/formats/records.json   one Kafka record of every message, with every field set

A sample is written again only when its format number rises (docs/formats.md).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from nephila.kernel.documents.job_document import spec_of
from nephila.programs.output_directory import OutputDirectory
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.jobs import queue_entry
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.rows import STORED_COLUMNS
from nephila_control.recorded_frontier import recorded_frontier
from nephila_stores.formats.markdown_file import row_markdown

from tests.e2e.web import Web, page, serve

DATA = Path(__file__).parents[1] / "data" / "formats"
HOSTS, PAGES = 3, 240
SEED = "http://h0.test/0"
URLS = frozenset(f"http://h{n % HOSTS}.test/{n}" for n in range(PAGES))
DEPTH = 3
"""Messages within messages; deeper ones are left out."""
SMALL = {
    "NEPHILA_SCHEDULER__ADDRESS_GAP_S": "0",
    "NEPHILA_DOWNLOADER__LIMITS__ADDRESS_GAP_S": "0",
    "NEPHILA_SCHEDULER__SEGMENT_BYTES": "4000",
    "NEPHILA_STORAGE__BATCH_ROWS": "8",
}
"""Small segments, so that there are snapshots, runs of queues and of seen URLs, and a log after them."""


@contextlib.contextmanager
def site() -> Iterator[Web]:
    """Pages on three hosts; each links to three others."""

    def answer(request: Any) -> Any:
        if not request.path[1:].isdigit() or int(request.path[1:]) >= PAGES:
            return None
        number = int(request.path[1:])
        links = [n for n in (2 * number + 1, 2 * number + 2, (number * 7 + 3) % PAGES) if n < PAGES]
        return page(*(f"http://h{n % HOSTS}.test/{n}" for n in links), title=f"Page {number}")

    with serve(answer) as web:
        yield web


def crawl(web: Web, *words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """`nephila crawl ... --out o` on the site, without delay, to its end."""
    options = ("--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0", "--quiet")
    return subprocess.run(
        [sys.executable, "-m", "nephila", "crawl", *words, *options, "--format", "sqlite,jsonl,warc", "--scope", "any"],
        cwd=cwd,
        env={**os.environ, **SMALL, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def killed_crawl(cwd: Path, **env: str) -> None:
    """A crawl that is killed when a part of its rows is written."""
    with site() as web:
        done = crawl(web, SEED, "--workers", "0", cwd=cwd, NEPHILA_FAILPOINT="frontier_commit_after:45", **env)
    assert done.returncode == -signal.SIGKILL, done.stderr


def unpack(folder: Path) -> Path:
    """The directory of the killed crawl."""
    with tarfile.open(DATA / "crawl.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "o"


def values(out: Path) -> dict[str, Any]:
    """What each reader finds in the killed crawl, as JSON has it. Times of the clock count from the epoch."""
    directory = OutputDirectory(out)
    run = directory.read()
    frontier = recorded_frontier(directory, run, 0.0, 0.0)[0].dispatcher.frontier
    (job,) = (job for _, job in frontier.jobs.items())
    hosts = [frontier.hosts.get(number) for number in frontier.store.hosts_of(job.number)]
    with open_for_reading(directory.rows(run), check=True) as connection:
        rows = connection.execute(f"SELECT {', '.join(STORED_COLUMNS)} FROM pages ORDER BY url", {}).fetchall()
    shown = [STORED_COLUMNS.index(name) for name in ("url", "outcome", "depth", "fetch_no", "title", "text")]
    found = {
        "run.json": run,
        "log and snapshot": list(CommitLog(directory.frontier, read_only=True).recover()),
        "job": spec_of(job.spec),
        "queues": [
            queue_entry.unpack(packed) for host in hosts for _, packed in frontier.store.items(host.number, job.number)
        ],
        "hosts": [frontier.hosts.state_of(host) for host in hosts],
        "seen": job.seen.keys(b"\0" * 16, PAGES).hex(),
        "rows": [[*(row[column] for column in shown), row_markdown(row)] for row in rows],
    }
    return {name: json.loads(msgspec.json.encode(value)) for name, value in found.items()}


def fill(message: Any, depth: int = DEPTH) -> Any:
    """Set every field of a protobuf message, each to another value; enums to their highest."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None:
            if depth and field.is_repeated:
                fill(getattr(message, field.name).add(), depth - 1)
            elif depth:
                fill(getattr(message, field.name), depth - 1)
        elif field.is_repeated:
            getattr(message, field.name).extend([_value(field), _value(field)])
        else:
            setattr(message, field.name, _value(field))
    return message


def _value(field: Any) -> Any:
    if field.enum_type is not None:
        return max(one.number for one in field.enum_type.values)
    kinds = {
        field.CPPTYPE_BOOL: True,
        field.CPPTYPE_STRING: f"{field.name} ü" if field.type == field.TYPE_STRING else field.name.encode() + b"\xff",
        field.CPPTYPE_DOUBLE: 1_750_000_000.5 + field.number,
        field.CPPTYPE_FLOAT: 0.5 + field.number,
    }
    return kinds.get(field.cpp_type, 1_000 + field.number)


def records() -> dict[str, str]:
    """A record of every message type, as hex."""
    from nephila_cluster.kafka.wire import CODECS, frame_of, seal

    found = {}
    for struct, codec in CODECS.items():
        message = codec.decode(fill(codec.proto()).SerializeToString())
        found[struct.__name__] = seal([frame_of(struct, message)]).hex()
    return dict(sorted(found.items()))


def main() -> None:
    """Write the samples."""
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / "records.json").write_text(json.dumps(records(), indent=1) + "\n")
    with tempfile.TemporaryDirectory() as name:
        killed_crawl(Path(name))
        with tarfile.open(DATA / "crawl.tar.xz", "w:xz") as archive:
            beside = ("control.sock", ".lock", "-shm")
            archive.add(Path(name) / "o", "o", filter=lambda entry: None if entry.name.endswith(beside) else entry)
    with tempfile.TemporaryDirectory() as name:
        sections = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values(unpack(Path(name))).items()]
    (DATA / "crawl.json").write_text("{\n" + ",\n".join(sections) + "\n}\n")


if __name__ == "__main__":
    main()
