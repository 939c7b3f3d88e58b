"""Pages that attack the browser that renders them: each URL gets a row, and no process of a browser is left."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.e2e.web import Reply, Request, rows, run, serve

pytestmark = pytest.mark.usefixtures("chromium")

TEXT = "<p>The text of this page.</p>"
SCRIPTS = {
    "popup": "for (let i = 0; i < 20; i++) window.open('/child')",
    "popup-loop": "setInterval(() => window.open('/child'), 1)",
    "dialogs": "alert(1); confirm(2); prompt(3); onbeforeunload = () => 'stay'",
    "endless-dialogs": "setInterval(() => alert(1), 1)",
    "endless-script": "for (;;) {}",
    "download": "location.href = '/file.zip'",
    "reload": "location.reload()",
    "reload-later": "setInterval(() => location.reload(), 20)",
    "history": "setInterval(() => history.pushState(0, '', '/history?' + Math.random()), 1)",
    "huge": "document.body.innerHTML = '<div>' + '<i>x</i>'.repeat(60_000)",
    "deep": "let n = document.body; for (let i = 0; i < 5000; i++) n = n.appendChild(document.createElement('div'))",
    "close": "window.close()",
}
BODIES = {name: f"{TEXT}<script>{script}</script>" for name, script in SCRIPTS.items()} | {
    "refresh": f"<meta http-equiv=refresh content=0>{TEXT}",
    "frames": TEXT + "<iframe src=/frames></iframe>" * 5,
    "print": f"{TEXT}<script>print()</script>",
}
WORKER = f"""{TEXT}<p id=x>waits</p><script>
navigator.serviceWorker.register('/worker.js').then(() => x.textContent = 'accepted', e => x.textContent = e.name)
</script>"""
MAY_FAIL = frozenset(("endless-script", "endless-dialogs", "popup-loop", "huge", "deep", "download", "close"))
"""Pages without a document at the end, or above a limit. All others are stored with their text."""


def answer(request: Request) -> Reply | None:
    """A start page, the hostile ones, and one that is harmless."""
    path = request.path.partition("?")[0].strip("/")
    if path == "":
        return Reply("".join(f"<a href=/{name}>x</a>" for name in [*BODIES, "good", "file.zip"]) + TEXT)
    if path in ("child", "good"):
        return Reply(TEXT)
    if path == "file.zip":
        return Reply(b"PK" * 100, type="application/zip", headers={"Content-Disposition": "attachment"})
    if path == "worker":
        return Reply(WORKER)
    return Reply(BODIES[path]) if path in BODIES else None


def processes(word: str) -> list[int]:
    """Processes with a word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if word.encode() in (entry / "cmdline").read_bytes() and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


@pytest.mark.timeout(400)
def test_every_hostile_page_has_a_row_and_no_browser_is_left(tmp_path: Path) -> None:
    """Popups, dialogs, endless scripts and reloads, downloads, a service worker, a huge document."""
    profiles = Path(tempfile.mkdtemp(prefix="nb-", dir="/tmp"))  # the path of Chromium's socket is limited
    settings = {
        "NEPHILA_SCHEDULER__TRIES": "2",
        "NEPHILA_SCHEDULER__BACKOFF_S": "0.5",
        "NEPHILA_DOWNLOADER__BROWSER__TIMEOUT_S": "6",
        "TMPDIR": str(profiles),
    }
    with serve(answer) as web:
        maps = ("--host-map", web.host_map, "--host-map", f"*.localhost=127.0.0.1:{web.port}")
        options = ("--out", "o", "--allow-private", *maps, "--delay", "0", "--render", "always")
        seeds = ("http://hostile.test/", "http://app.localhost/worker")
        done = run("crawl", *seeds, *options, cwd=tmp_path, timeout=350, **settings)
    assert done.returncode == 0, done.stderr
    found = {url: (outcome, reason) for url, outcome, reason in rows(tmp_path)}
    texts = dict(rows(tmp_path, "url, text"))
    assert found["http://hostile.test/good"] == ("stored", "")
    for name in BODIES:
        url = f"http://hostile.test/{name}"
        outcome, reason = found.get(url, ("no row", ""))
        assert outcome in ("stored", "failed", "dropped"), (url, found)
        assert (outcome == "stored") == (not reason)
        if name not in MAY_FAIL:
            assert outcome == "stored", (url, outcome, reason)
            assert "The text of this page." in texts[url], url
    assert "SecurityError" in texts["http://app.localhost/worker"]
    assert processes(str(profiles)) == []
    assert list(profiles.glob("nephila-browser-*")) == []
    shutil.rmtree(profiles)
