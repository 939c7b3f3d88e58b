"""From a bare container to the first Markdown page, timed: `python -m tools.first_page WHEEL` (needs a Docker engine).

The container has Python and nothing else: no compiler, no Rust, no make. The wheel is installed by pip, run by
`pipx run` and by `uvx`, each in a container of its own; each crawls a site of this machine to Markdown in a mounted
folder, and the time of every step is printed. `--image` names another Python, `--url` a page of the web. `--here` does
the steps of pip in a fresh virtual environment of this machine, where there is no engine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

IMAGE: Final = "python:3.11-slim-bookworm"
OWN: Final = "--allow-private"
INSTALLERS: Final = {
    "pip": ('$PIP "$WHEEL"', "$NEPHILA"),
    "pipx": ("$PIP pipx", 'pipx run --quiet --spec "$WHEEL" nephila'),
    "uvx": ("$PIP uv", 'uvx --quiet --from "$WHEEL" nephila'),
}
"""Name → what is installed first, and how the program is called then."""
BEGIN: Final = """
set -e
began=$(date +%s%N)
step() { now=$(date +%s%N); echo "  $(( (now - began) / 1000000 )) ms $1"; }
PIP="$PYTHON -m pip install -q --disable-pip-version-check --root-user-action ignore"
for word in cc gcc cargo rustc make; do
    if [ -z "$HERE" ] && command -v $word > /dev/null; then echo "the image has $word: it is not bare"; exit 1; fi
done
"""
CRAWL: Final = """
nephila_() { CALL "$@"; }
INSTALL
step installed
nephila_ --version
step started
nephila_ crawl "$URL" --scope host --max-pages 10 --delay 0 --format sqlite,markdown --quiet --out "$OUT" $MORE
step crawled
page=$(find "$OUT" -name '*.md' | sort | head -1)
test -s "$page"
sed 's/^/    /; 4q' "$page"
step "first page read"
nephila_ doctor > /tmp/doctor.txt || true
grep -qi "native core.*rust" /tmp/doctor.txt || { cat /tmp/doctor.txt; exit 1; }
"""
AFTER: Final = {
    "pip": """
manual=$($PYTHON -c 'import sysconfig; print(sysconfig.get_path("data"))')/share/man/man1/nephila.1
grep -q '^.TH NEPHILA' "$manual"
_NEPHILA_COMPLETE=complete_bash COMP_WORDS='nephila cra' COMP_CWORD=1 "$NEPHILA" | grep -qx crawl
_NEPHILA_COMPLETE=complete_bash COMP_WORDS='nephila crawl --max-p' COMP_CWORD=2 "$NEPHILA" | grep -qx -- --max-pages
_NEPHILA_COMPLETE=source_bash "$NEPHILA" | grep -q complete_bash
echo '  native core, man page and completion: there'
""",
    "pipx": """
pipx install --quiet "$WHEEL"
grep -q '^.TH NEPHILA' "$HOME/.local/share/man/man1/nephila.1"
echo '  native core; man page after pipx install: there'
""",
    "uvx": "echo '  native core: there'",
}
"""What is checked when the time is over."""
PAGES: Final = {
    "/": '<h1>Kettle</h1><p>The manual of the red kettle, in three pages.</p><a href="/fill">Filling</a>',
    "/fill": '<h1>Filling</h1><p>Fill it with cold water up to the mark.</p><a href="/boil">Boiling</a>',
    "/boil": "<h1>Boiling</h1><p>Press the lever until it clicks, and wait.</p><pre><code>kettle --on</code></pre>",
}


class Manual(BaseHTTPRequestHandler):
    """The site of this machine."""

    def do_GET(self) -> None:
        body = PAGES.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(f"<!doctype html><title>Kettle</title><main>{body or ''}</main>".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not listed."""


@contextmanager
def site() -> Iterator[str]:
    """Its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Manual) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()


def steps(installer: str) -> str:
    """The script of an installer."""
    install, call = INSTALLERS[installer]
    return BEGIN + CRAWL.replace("INSTALL", install).replace("CALL", call) + AFTER[installer]


def in_container(image: str, wheel: Path, out: Path, script: str, settings: dict[str, str]) -> list[str]:
    """The command of a container that is removed at its end; it shares the network of this machine."""
    inside = {**settings, "PYTHON": "python", "NEPHILA": "nephila", "WHEEL": f"/wheel/{wheel.name}", "OUT": "/out/site"}
    given = [word for name, value in inside.items() for word in ("-e", f"{name}={value}")]
    mounts = ["-v", f"{wheel.parent.resolve()}:/wheel:ro", "-v", f"{out}:/out"]
    # Programs of pipx are below /root/.local.
    return [
        "docker",
        "run",
        "--rm",
        "--network",
        "host",
        *mounts,
        *given,
        "-e",
        "HOME=/root",
        image,
        "sh",
        "-c",
        script,
    ]


def run(installer: str, wheel: Path, image: str, settings: dict[str, str]) -> int:
    """The exit code of the steps in a container."""
    out = Path(tempfile.mkdtemp(prefix="first-page-"))
    try:
        return subprocess.run(in_container(image, wheel, out, steps(installer), settings), check=False).returncode
    finally:
        shutil.rmtree(out, ignore_errors=True)


def run_here(wheel: Path, settings: dict[str, str]) -> int:
    """The exit code of the steps of pip in a virtual environment."""
    out = Path(tempfile.mkdtemp(prefix="first-page-"))
    try:
        subprocess.run([sys.executable, "-m", "venv", out / "venv"], check=True)
        programs = out / "venv" / "bin"
        words = {"PYTHON": programs / "python", "NEPHILA": programs / "nephila", "WHEEL": wheel.resolve()}
        inside = {name: str(value) for name, value in words.items()} | {"OUT": str(out / "site"), "HERE": "1"}
        command = ["sh", "-c", steps("pip")]
        return subprocess.run(command, env={**os.environ, **settings, **inside}, check=False).returncode
    finally:
        shutil.rmtree(out, ignore_errors=True)


def main() -> int:
    """The first exit code of the steps that is not 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", type=Path, help="dist/nephila-*.whl, of make wheels")
    parser.add_argument("--image", default=IMAGE)
    parser.add_argument("--installer", choices=[*INSTALLERS], action="append", help="this one only; repeatable")
    parser.add_argument("--url", help="a page of the web instead of the site of this machine")
    parser.add_argument("--here", action="store_true", help="in a virtual environment, without a container")
    given = parser.parse_args()
    if not given.here and (
        shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True).returncode
    ):
        print("no Docker engine answers here; --here measures a virtual environment", file=sys.stderr)
        return 2
    with site() as own:
        settings = {"URL": given.url or own, "MORE": "" if given.url else OWN}
        for installer in ["pip"] if given.here else given.installer or [*INSTALLERS]:
            print(f"{installer}: {'a virtual environment' if given.here else given.image}", flush=True)
            began = time.monotonic()
            code = run_here(given.wheel, settings) if given.here else run(installer, given.wheel, given.image, settings)
            print(f"  {time.monotonic() - began:.1f} s in all, exit {code}", flush=True)
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
