"""The web of the cluster show: one server for many host names, pages made on the fly, one JSON line per request.

    python site.py PAGES_PER_HOST HOST...

Each host has pages /0 to /N-1 in a binary tree, and its first page links to the first page of every other host.
A script writes the text of /scripted, and the link to /behind.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = int(sys.argv[1])
HOSTS = sys.argv[2:]
WORDS = 400
"""Words of a page. Each page has its own: near-copies without end would be isolated as a trap."""
SCRIPTED = """<!doctype html><title>shell</title><main></main><script>
document.querySelector("main").innerHTML = "<p>This paragraph is written by a script.</p><a href='/behind'>next</a>";
</script>"""
OTHERS = {"scripted": SCRIPTED, "behind": "<!doctype html><title>behind</title><p>A page behind a link.</p>"}
LOCK = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        started = time.time()
        host = self.headers.get("Host", "").partition(":")[0]
        number = self.path[1:]
        links: list[str] = []
        if number.isdigit() and int(number) < PAGES:
            parent = int(number)
            links = [f"/{child}" for child in (2 * parent + 1, 2 * parent + 2) if child < PAGES]
            links += [f"http://{other}/0" for other in HOSTS] if parent == 0 else []
        status = 200 if number in OTHERS or (number.isdigit() and int(number) < PAGES) else 404
        anchors = "".join(f"<li><a href='{link}'>page {link}</a></li>" for link in links)
        words = " ".join(f"{one:x}" for one in random.Random(f"{host}/{number}").choices(range(1 << 32), k=WORDS))
        page = f"<!doctype html><title>{host} {number}</title><p>{host} {number} {words}</p><ul>{anchors}</ul>"
        body = OTHERS.get(number, page).encode()
        sent = time.time()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        line = {"start": started, "sent": sent, "end": time.time(), "host": host, "path": self.path, "status": status}
        with LOCK:
            print(json.dumps(line), flush=True)

    def log_message(self, *words: object) -> None:
        """Only the JSON lines."""


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


Server(("0.0.0.0", 8080), Handler).serve_forever()
