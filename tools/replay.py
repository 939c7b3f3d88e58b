"""Shows whether archives replay: a page as it was, beside the same page replayed by pywb. Not part of any test.

    python3 -m venv /tmp/pywb && /tmp/pywb/bin/pip install pywb setuptools
    PYTHONPATH=services:. python -m tools.replay /tmp/pywb/bin [--out DIR] [--chromium FILE]

It serves a small site on loopback, crawls it with `--page-requisites` over plain HTTP and with `--render always`, takes
a picture of the live page, stops the site, and takes pictures of the replayed page of both archives. It writes
live.png, replayed-http.png and replayed-rendered.png, and prints whether they are equal, and which requests of the
replay found no answer. pywb reads the index that `nephila export --format cdxj` writes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.web import Reply, Request, Web, crawl, run, serve

START = "http://shop.test/"
SIZE = "900,640"
START_S = 30.0
"""Time for the start of pywb."""
PAGE = """<!doctype html><html lang=en><head><title>Shop</title><link rel=stylesheet href=/site.css>
<link rel=icon href=/icon.png><script src=//cdn.test/app.js defer></script></head>
<body><header>Lamps</header><p>The words of this page say which lamps the shop has, and what each of them costs.</p>
<img src=/blue.png srcset="/blue.png 1x, /blue.png?2 2x" width=120 height=120>
<picture><source srcset=/green.png type=image/png><img src=/none.png width=120 height=120></picture>
<div class=back>a picture of the style</div>
<p id=script>without its script</p><p id=data>without its data</p></body></html>"""
STYLE = """@import url("/more/colours.css"); body { font: 18px sans-serif; margin: 24px }
header { font-size: 40px; padding: 12px } .back { background: url(/red.png); height: 90px; margin-top: 20px }"""
COLOURS = "header { background: #134; color: #fff } body { background: #eef url('corner.png') no-repeat right bottom }"
SCRIPT = """document.getElementById('script').textContent = 'written by its script';
fetch('/data.json').then(one => one.json())
  .then(data => { document.getElementById('data').textContent = data.text });"""


def png(red: int, green: int, blue: int) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    line = b"\0" + bytes((red, green, blue)) * 80
    head = struct.pack(">IIBBBBB", 80, 80, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(line * 80)) + chunk(b"IEND", b"")


REPLIES = {
    "/": Reply(PAGE),
    "/site.css": Reply(STYLE, type="text/css"),
    "/more/colours.css": Reply(COLOURS, type="text/css"),
    "/app.js": Reply(SCRIPT, type="text/javascript"),
    "/data.json": Reply(
        '{"text": "read by its script"}', type="application/json", headers={"Access-Control-Allow-Origin": "*"}
    ),
    "/robots.txt": Reply("", type="text/plain"),
    **{
        path: Reply(png(*colour), type="image/png")
        for path, colour in {
            "/blue.png": (40, 80, 200),
            "/blue.png?2": (40, 80, 200),
            "/green.png": (30, 150, 60),
            "/red.png": (200, 60, 50),
            "/icon.png": (0, 0, 0),
            "/more/corner.png": (240, 180, 40),
        }.items()
    },
}


def answer(request: Request) -> Reply | None:
    """The site."""
    return REPLIES.get(request.path)


def picture(chromium: str, url: str, to: Path, *more: str) -> None:
    """Take a picture of a page."""
    words = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=8000")
    words += ("--disable-background-networking", "--disable-component-update", "--no-first-run")
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, *words, f"--user-data-dir={profile}", f"--window-size={SIZE}", f"--screenshot={to}", *more]
        subprocess.run([*command, url], check=True, capture_output=True, timeout=120)


def archive(web: Web, directory: Path, *options: str) -> Path:
    """Crawl the site into an archive with an index."""
    directory.mkdir()
    for done in (
        crawl(web, START, "--format", "warc", "--page-requisites", *options, cwd=directory, timeout=300),
        run("export", "o", "--format", "cdxj", "-o", "index.cdxj", cwd=directory),
    ):
        if done.returncode:
            raise SystemExit(done.stderr)
    return directory


@contextlib.contextmanager
def pywb(programs: Path, archived: Path, log: Path) -> Iterator[str]:
    """Run pywb over an archive, as a proxy; yields its address."""
    collection = archived / "collections" / "shop"
    for name in ("archive", "indexes"):
        (collection / name).mkdir(parents=True)
    for path in (archived / "o").glob("*.warc.gz"):
        shutil.copy(path, collection / "archive")
    shutil.copy(archived / "index.cdxj", collection / "indexes" / "index.cdxj")
    (archived / "config.yaml").write_text("proxy: {coll: shop, enable_banner: false}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [programs / "wayback", "-b", "127.0.0.1", "-p", str(port)], cwd=archived, stdout=out, stderr=out
        )
        try:
            until = time.monotonic() + START_S
            while True:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                    break
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"pywb did not start: {log.read_text()[-2000:]}")
                time.sleep(0.2)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pywb", type=Path, help="directory of the program wayback")
    parser.add_argument("--out", type=Path, default=Path("replay"), help="directory of the pictures")
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    options = parser.parse_args()
    out = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        with serve(answer) as web:
            rules = f"--host-resolver-rules=MAP *.test 127.0.0.1:{web.port}"
            picture(options.chromium, START, out / "live.png", rules)
            archives = {
                "http": archive(web, Path(place) / "http"),
                "rendered": archive(web, Path(place) / "rendered", "--render", "always"),
            }
        live = (out / "live.png").read_bytes()
        for name, archived in archives.items():
            log, to = out / f"pywb-{name}.log", out / f"replayed-{name}.png"
            with pywb(options.pywb.absolute(), archived, log) as proxy:
                # Nothing but pywb is reachable: what it does not answer is missing in the picture.
                picture(options.chromium, START, to, f"--proxy-server={proxy}")
            missing = sorted(set(re.findall(r'"GET (http://\S+\.test/\S*) HTTP/1\.1" 404', log.read_text())))
            print(
                f"{to.name}: {'equal to' if to.read_bytes() == live else 'differs from'} live.png; missing: {missing}"
            )


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    main()
