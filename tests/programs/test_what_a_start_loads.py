"""What a crawl of one page imports: modules that it does not need are not there (docs/adr/0002)."""

import http.server
import subprocess
import sys
import threading

import pytest

MOST = 680
"""Modules of a start at most, those of Python and of libraries among them."""
MOST_TEXTS = 240
"""Annotations that are compiled from their texts at most, of 1,700 without docs/adr/0003."""
NEVER = (
    "aiohttp",
    "brotli",
    "chardet",
    "isal",
    "jinja2",
    "lxml",
    "nephila.api",
    "nephila_console",
    "nephila_control.http.application",
    "nephila_control.local",
    "nephila.downloader.http.response.decode",
    "nephila_harvest",
    "nephila_cluster.kafka",
    "nephila_control.http.json_schema",
    "nephila_cluster.operator",
    "nephila_stores",
    "prometheus_client",
    "psycopg",
    "pyarrow",
    "pypdfium2",
    "python_calamine",
    "selectolax",
    "starlette",
    "tldextract",
    "uvicorn",
)
NEVER_BESIDE_GROUPS = (
    "nephila.downloader.service",
    "nephila.parser.in_progress",
    "nephila.programs.assembly",
    "nephila.scheduler.engine",
    "nephila.scheduler.frontier",
)
"""Not loaded by the main process of groups, which fetches and parses nothing."""
CRAWL = """
import sys, typing
make, texts = typing.ForwardRef.__init__, []
def note(self, text, *rest, **more):
    texts.append(text)
    make(self, text, *rest, **more)
typing.ForwardRef.__init__ = note
from nephila.__main__ import main
sys.argv = ["nephila", "crawl", *sys.argv[1:]]
code = main()
print(code, len(texts), *sys.modules, sep="\\n")
"""


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>One</title><p>A page without links.")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module", params=["0", "1"], ids=["alone", "groups"])
def start(request, tmp_path_factory):
    """A crawl of one page: its number of workers, that of the annotations that it compiles, the names of its
    modules."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    words = [f"http://127.0.0.1:{server.server_port}/", "--allow-private", "--delay", "0", "--quiet"]
    words += ["--workers", request.param, "--out", str(tmp_path_factory.mktemp("start") / "out")]
    try:
        ran = subprocess.run([sys.executable, "-c", CRAWL, *words], capture_output=True, text=True, check=True)
    finally:
        server.shutdown()
        server.server_close()
    code, texts, *names = ran.stdout.split()
    assert code == "0", ran.stderr
    return request.param, int(texts), names


@pytest.fixture(scope="module")
def loaded(start):
    """Names of the modules after that crawl."""
    return start[2]


def _of(name, loaded):
    return [module for module in loaded if module == name or module.startswith(f"{name}.")]


@pytest.mark.parametrize("name", NEVER)
def test_it_is_not_loaded(name, loaded):
    """It would take time of every start, and is for other programs or other options."""
    assert _of(name, loaded) == []


def test_a_program_loads_its_own_topology_alone(start):
    workers, _, loaded = start
    never = ("nephila.programs.groups",) if workers == "0" else NEVER_BESIDE_GROUPS
    assert [module for name in never for module in _of(name, loaded)] == []


def test_the_number_of_modules_is_bounded(loaded):
    """A module takes 0.2 to 0.3 ms of a start, however small it is."""
    assert "nephila.programs.crawl.program" in loaded
    assert len(loaded) <= MOST


def test_annotations_are_values(start):
    """In modules of structs and named tuples: `from __future__ import annotations` makes a text of each, which every
    start compiles."""
    assert 0 < start[1] <= MOST_TEXTS
