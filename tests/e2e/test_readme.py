"""Every block of README.md works when it is pasted, in the order of the page.

The blocks run by bash against a web server of the test, with http for https: `nephila` and `make` are small scripts on
the PATH that add what leads there (a host map, no delay). A comment before a block says when it needs more than this
machine has.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.web import Reply, page, serve

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?:<!-- (?P<needs>[^>]*) -->\n)?```(?P<kind>sh|python)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
BLOCKS = [block.groupdict() for block in FENCE.finditer((ROOT / "README.md").read_text(encoding="utf-8"))]
SHOP = (ROOT / "rules/shop/page.html").read_text(encoding="utf-8")

NEPHILA = """#!/bin/bash
words=("$@")
case $1 in
  crawl|up) words+=(--allow-private --host-map "*=127.0.0.1:$PORT") ;;
  extract) words+=(--allow-private --host-map "*=127.0.0.1:$PORT") ;;
esac
[[ $1 == crawl && " $* " != *" --delay "* ]] && words+=(--delay 0)
exec "$PYTHON" -m nephila "${words[@]}"
"""
MAKE = """#!/bin/bash
for word; do case $word in URL=*) url=${word#URL=} ;; ARGS=*) args=${word#ARGS=} ;; esac; done
[[ $1 == crawl && -n $url ]] || exit 9
exec nephila crawl "$url" --out crawl-out $args
"""


def answer(request):
    """A shop, a site with documentation, and what every site has."""
    if request.path == "/robots.txt":
        return Reply("User-agent: *\nDisallow: /print/\n", type="text/plain")
    if request.path == "/sitemap.xml":
        urls = "".join(f"<url><loc>http://{request.host}/{name}</loc></url>" for name in ("", "about"))
        return Reply(f"<urlset>{urls}</urlset>", type="application/xml")
    if request.host.startswith("kettle."):
        return page("/en/p/copper-kettle") if request.path == "/" else Reply(SHOP)
    if request.path in ("/", "/about", "/docs/", "/docs/a"):
        return page("/about", "/docs/a", "/nowhere")
    return None


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A directory like a clone's root, with the commands on the PATH; programs started there are ended."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "rules").symlink_to(ROOT / "rules")
    (folder / "bin").mkdir()
    for name, text in (("nephila", NEPHILA), ("make", MAKE)):
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    with serve(answer) as web:
        path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {
            **os.environ,
            "PATH": path,
            "PORT": str(web.port),
            "PYTHON": sys.executable,
            "NEPHILA_SCHEDULER__ADDRESS_GAP_S": "0",
            "NEPHILA_DOWNLOADER__LIMITS__ADDRESS_GAP_S": "0",
        }
        started: list[int] = []
        yield folder, env, web, started
        for group in started:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                pass


def test_the_readme_has_blocks():
    """Else the next test would have nothing to do."""
    assert len(BLOCKS) >= 12


@pytest.mark.timeout(900)
def test_the_blocks_work_when_pasted(desk):
    """In their order in one process, since a block uses the results of the blocks before it."""
    for block in BLOCKS:
        paste(desk, block)
    assert "Copper kettle" in (desk[0] / "products.csv").read_text()


def paste(desk, block):
    """Exit code 0 with -e: each command of a block succeeds."""
    folder, env, web, started = desk
    text = block["text"].replace("https:", "http:")
    if block["needs"] or text.startswith("make test"):
        assert block["needs"] in (None, "needs docker")
        return
    if block["kind"] == "python":
        text = text.replace("https:", "http:").replace(
            "max_pages=10", f"max_pages=10, allow_private=True, delay=0, host_map=['*=127.0.0.1:{web.port}']"
        )
        command = [sys.executable, "-c", text]
    else:
        text = text.replace("localhost:8000", f"localhost:{web.port}")
        command = ["bash", "-euo", "pipefail", "-c", text]
    output = folder / "output"
    with output.open("wb") as file:
        ran = subprocess.Popen(command, cwd=folder, env=env, stdout=file, stderr=file, start_new_session=True)
        started.append(ran.pid)
        code = ran.wait(timeout=120)
    assert code == 0, output.read_text(errors="replace")
    assert "Traceback" not in output.read_text(errors="replace")
