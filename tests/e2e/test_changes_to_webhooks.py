"""Changes delivered to a receiver that fails one call in three, by `nephila up` that is killed on the way."""

from __future__ import annotations

import base64
import json
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.e2e.program import job
from tests.e2e.web import page, run, serve

PAGES = 120
SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()


class Receiver:
    """An HTTP server on 127.0.0.1."""

    def __init__(self):
        self.calls = 0
        self.ids = []
        lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            """Answers 500 to each third call."""

            def do_POST(self):
                """One delivery."""
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    receiver.calls += 1
                    accepted = bool(receiver.calls % 3)
                    if accepted:
                        assert body["data"]["id"] == self.headers["webhook-id"]
                        receiver.ids.append(body["data"]["id"])
                self.send_response(204 if accepted else 500)
                self.end_headers()

            def log_message(self, *words):
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        """End the server."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def site(request):
    """A tree of pages."""
    if not request.path[1:].isdigit() or (number := int(request.path[1:])) >= PAGES:
        return None
    return page(*(f"/{child}" for child in (2 * number + 1, 2 * number + 2) if child < PAGES), title=f"Page {number}")


def changes(tmp_path):
    """The change feed."""
    done = run("changes", "--out", "o", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.full
def test_every_change_reaches_the_receiver_once_by_its_id(tmp_path, up):
    """Over two kill -9; a delivery that a kill repeats has the same id, and the order holds."""
    receiver = Receiver()
    port = receiver.server.server_address[1]
    (tmp_path / "hooks.yaml").write_text(
        json.dumps(
            {
                "allow_addresses": ["127.0.0.0/8"],
                "first_pause_s": 0.05,
                "longest_pause_s": 0.2,
                "poll_s": 0.1,
                "webhooks": [{"name": "one", "url": f"http://127.0.0.1:{port}/", "secret": SECRET}],
            }
        )
    )
    try:
        with serve(site) as web:
            program = up(web, "--webhooks", "hooks.yaml")
            program.apply(job("news", seeds=["http://a.test/0"], politeness={"delay": "10ms"}))
            for stored in (PAGES // 3, 2 * PAGES // 3):
                program.until(lambda jobs, stored=stored: jobs["news"]["stored"] >= stored)
                program.end(signal.SIGKILL)
                program.start()
            program.until(lambda jobs: jobs["news"]["state"] == "idle")
            wanted = [one["id"] for one in changes(tmp_path) if one["change"] == "new"]
            assert len(wanted) == PAGES
            program.until(lambda jobs: set(wanted) <= set(receiver.ids))
            assert program.end() == (0, "", "")
        listed = json.loads(run("webhooks", "list", "--out", "o", "--json", cwd=tmp_path).stdout)
        assert (listed["name"], listed["position"], listed["dead"]) == ("one", listed["newest"], 0)
        in_order = list(dict.fromkeys(receiver.ids))
        assert in_order == [one["id"] for one in changes(tmp_path)]
        assert len(receiver.ids) - len(in_order) <= 2  # one delivery in flight at each kill
        replayed = run("webhooks", "replay", "one", "--since", in_order[-3], "--out", "o", cwd=tmp_path)
        assert replayed.returncode == 0, replayed.stderr
        receiver.ids.clear()
        done = run("webhooks", "run", "--file", "hooks.yaml", "--out", "o", "--once", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert receiver.ids == in_order[-2:]
    finally:
        receiver.close()
