"""Rendered pages: speed, CPU, memory and processes; `render: auto` beside `always`.

*render*: N pages whose text comes by XHR, four at once, by `nephila crawl --render always`. CPU is that of all its
processes, browsers included, sampled from /proc; so is memory: its median over the second fifth of the run and over
the last. A process that is left a second after the end counts.

*auto*: a site of four templates, of which two are empty without a browser; a tenth of the pages has these templates,
since the speed-up is bounded by the share of pages that need a browser. The pages contain a script that reports
each page that a browser has rendered, so the server has the lane of each page. A verdict is right if a page of an empty
template was rendered, or another one was not; pages fetched by both lanes are comparisons and count for neither.

    python -m benchmarks.bench_browser [--only render|auto] [--pages 500] [--save]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.report import RESULTS, save, table, versions

CONCURRENCY = 4
FLAT = 0.1
"""Change of the memory between the second fifth of the run and the last that counts as none."""
AUTO_HOSTS = 4
"""Host names of the site of *auto*: verdicts are learnt per host."""
HOSTS = 8
"""Host names of the site: one page of a host is fetched at a time."""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
WORDS = "The text of this page has some forty words, " * 8
RENDERED, PLAIN = ("app", "shop"), ("news", "text")
SHELL = """<!doctype html><title>loading</title><div id=x></div><script>
fetch('/api' + location.pathname).then(r => r.json()).then(page => {
  document.title = page.title; x.innerHTML = '<h1>' + page.title + '</h1><p>' + page.text + '</p>' + page.links; });
</script>"""
REPORT = "<script>fetch('/ran' + location.pathname)</script>"


class Site:
    """Pages `/TEMPLATE/NUMBER`; counts documents and renderings by path."""

    def __init__(self, pages: dict[str, int]) -> None:
        """`pages`: their number by template."""
        self.pages = pages
        self.documents: Counter[str] = Counter()
        self.rendered: Counter[str] = Counter()

    def answer(self, path: str) -> tuple[str, str]:
        """Body and media type of a path; the body is empty where there is nothing."""
        if path.startswith("/api/"):
            self.rendered[path.removeprefix("/api")] += 1
            return json.dumps(self._content(path.removeprefix("/api/"))), "application/json"
        if path.startswith("/ran/"):
            self.rendered[path.removeprefix("/ran")] += 1
            return "{}", "application/json"
        template, _, number = path.strip("/").partition("/")
        if not number.isdigit() or template not in self.pages:
            return "", ""
        self.documents[path] += 1
        if template in RENDERED:
            return SHELL, "text/html"
        content = self._content(path.strip("/"))
        return "<title>{title}</title><h1>{title}</h1><p>{text}</p>{links}".format(**content) + REPORT, "text/html"

    def _content(self, name: str) -> dict[str, str]:
        template, _, number = name.partition("/")
        text = f"{WORDS} and ends with the number {number} of {template}."
        row, host = divmod(int(number), HOSTS)
        rows = max(self.pages[template] // HOSTS, 1)
        links = "".join(
            f'<a href="/{template}/{(row + step) % rows * HOSTS + host}">more</a>'
            for step in range(1, 6)
            if rows > step
        )
        return {"title": f"{template} {number}", "text": text, "links": links}


@contextlib.contextmanager
def serve(site: Site) -> Iterator[int]:
    """Serve the site on loopback; gives its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body, kind = site.answer(self.path.partition("?")[0])
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: Any) -> None:
            """Silent."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: Any) -> None:
            """A browser that ends closes its connections."""

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class Meter:
    """CPU and memory of all processes that have a mark in their environment, and of their descendants.

    Chromium overwrites the environment of its renderers, so the mark alone would miss them.
    """

    def __init__(self, mark: str) -> None:
        self._mark = f"BENCH_MARK={mark}".encode()
        self._cpu: dict[tuple[int, int], float] = {}
        self._known: dict[tuple[int, int], bool] = {}
        """By process id and start time, since ids are used again."""
        self.memory: list[int] = []

    def sample(self) -> list[int]:
        """Read /proc once; gives the processes that run."""
        found, memory = [], 0
        ours: set[int] = set()
        for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda one: int(one.name)):
            pid = int(entry.name)
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                process = pid, int(fields[19])
                if not self._known.get(process):
                    is_child = int(fields[1]) in ours
                    self._known[process] = is_child or self._mark in (entry / "environ").read_bytes()
                if not self._known[process] or fields[0] == "Z":
                    continue
                ours.add(pid)
                found.append(pid)
                self._cpu[process] = (int(fields[11]) + int(fields[12])) * TICK_S
                _, resident, shared, *_ = (entry / "statm").read_text().split()
                memory += (int(resident) - int(shared)) * PAGE
        self.memory.append(memory)
        return found

    @property
    def cpu_s(self) -> float:
        """Of all processes so far."""
        return sum(self._cpu.values())


def measured(command: list[str], cwd: Path, pages: int, **environment: str) -> dict[str, Any]:
    """Run a program to its end; its figures."""
    mark = uuid.uuid4().hex
    meter, started = Meter(mark), time.monotonic()
    with (cwd / "log").open("w") as log:
        program = subprocess.Popen(
            command, cwd=cwd, stdout=log, stderr=log, env={**os.environ, "BENCH_MARK": mark, **environment}
        )
        try:
            while program.poll() is None:
                meter.sample()
                time.sleep(0.2)
        finally:
            program.kill()
    seconds = time.monotonic() - started
    if program.returncode:
        raise RuntimeError(f"{command[:4]} ended with {program.returncode}: {(cwd / 'log').read_text()[-1500:]}")
    memory = meter.memory
    time.sleep(1)
    left = len(meter.sample())
    fifth = max(len(memory) // 5, 1)
    early, late = median(memory[fifth : 2 * fifth] or memory), median(memory[-fifth:])
    return {
        "pages_per_s": round(pages / seconds, 2),
        "cpu_s_per_page": round(meter.cpu_s / pages, 3),
        "memory_early_mb": round(early / 2**20),
        "memory_late_mb": round(late / 2**20),
        "memory_change": round(late / early - 1, 3),
        "processes_left": left,
    }


def crawl(port: int, cwd: Path, seeds: list[str], render: str, pages: int) -> dict[str, Any]:
    """`nephila crawl` over the site; adds the pages that have their text."""
    (cwd / "seeds").write_text("\n".join(seeds))
    command = [sys.executable, "-m", "nephila", "crawl", "--seeds", "seeds", "--out", "o", "--allow-private"]
    command += ["--host-map", f"*.test=127.0.0.1:{port}", "--delay", "0", "--concurrency", str(CONCURRENCY)]
    command += ["--render", render, "--ignore-robots", "--quiet"]
    found = measured(
        command, cwd, pages, NEPHILA_DOWNLOADER__BROWSER__PROCESSES="1", NEPHILA_DOWNLOADER__BROWSER__PAGES="4"
    )
    with contextlib.closing(sqlite3.connect(cwd / "o" / "nephila.db")) as db:
        rows = db.execute("select url, text from pages where outcome = 'stored'").fetchall()
    found["complete"] = sum(_is_complete(url, text) for url, text in rows)
    return found


def _is_complete(url: str, text: str) -> bool:
    path = re.search(r"/(\w+)/(\d+)$", url)
    return path is not None and f"the number {path[2]} of {path[1]}." in (text or "")


def bench_render(pages: int) -> dict[str, Any]:
    """All pages with a browser."""
    with serve(Site({"app": pages})) as port, tempfile.TemporaryDirectory(prefix="nbb-", dir="/tmp") as folder:
        seeds = [f"http://h{number % HOSTS}.test/app/{number}" for number in range(pages)]
        return crawl(port, Path(folder), seeds, "always", pages)


def bench_auto(pages: int) -> dict[str, Any]:
    """`render: auto` and `always` over a site where two of four templates need a browser."""
    found: dict[str, Any] = {}
    needed, plain = max(pages // 20, 1), max(pages * 9 // 20, 1)
    for render in ("auto", "always"):
        site = Site(dict.fromkeys(RENDERED, needed) | dict.fromkeys(PLAIN, plain))
        with serve(site) as port, tempfile.TemporaryDirectory(prefix="nbb-", dir="/tmp") as folder:
            seeds = [
                f"http://h{n % AUTO_HOSTS}.test/{one}/{n}" for one, count in site.pages.items() for n in range(count)
            ]
            found[render] = crawl(port, Path(folder), seeds, render, len(seeds))
        by_one_lane = [path for path, count in site.documents.items() if count == 1]
        right = sum(
            (site.rendered[path] > 0) == path.startswith(tuple(f"/{one}/" for one in RENDERED)) for path in by_one_lane
        )
        found[render] |= {
            "pages": len(seeds),
            "compared": sum(count > 1 for count in site.documents.values()),
            "verdicts": len(by_one_lane),
            "right": right,
        }
    found["speedup"] = round(found["auto"]["pages_per_s"] / found["always"]["pages_per_s"], 2)
    return found


COLUMNS = ("pages_per_s", "cpu_s_per_page", "memory_early_mb", "memory_late_mb", "processes_left", "complete")


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=("render", "auto"))
    parser.add_argument("--pages", type=int, default=500, help="of the part render")
    parser.add_argument("--auto-pages", type=int, default=400)
    parser.add_argument("--save", action="store_true", help="write the raw result to benchmarks/results")
    arguments = parser.parse_args()
    result: dict[str, Any] = {"pages": arguments.pages, "versions": versions("playwright")}
    if arguments.only != "auto":
        ours = result["render"] = bench_render(arguments.pages)
        print(table(COLUMNS, [[ours.get(column, "-") for column in COLUMNS]]))
        flat = "flat" if abs(ours.get("memory_change", 1)) <= FLAT else "NOT FLAT"
        print(
            f"memory of nephila: {ours.get('memory_change', 0):+.1%}, {flat}; processes left: {ours['processes_left']}"
        )
    if arguments.only != "render":
        result["auto"] = bench_auto(arguments.auto_pages)
        columns = ("pages_per_s", "cpu_s_per_page", "pages", "complete", "compared", "verdicts", "right")
        print(
            table(
                ["render", *columns], [[one, *(result["auto"][one][c] for c in columns)] for one in ("auto", "always")]
            )
        )
        print(f"auto is {result['auto']['speedup']} times as fast as always")
    if arguments.save:
        print(save("browser", result, RESULTS))


if __name__ == "__main__":
    main()
