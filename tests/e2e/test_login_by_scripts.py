"""A single-page application behind a login by XHR: the login happens once, and all pages have their content."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.e2e.web import Reply, crawl, rows, serve

pytestmark = pytest.mark.usefixtures("chromium")

SHELL = """<!doctype html><html><head><title>app</title></head><body><div id="app"></div><script>
const MODE = %s;
const app = document.querySelector('#app');
const token = () => MODE === 'token' ? {Authorization: 'Bearer ' + localStorage.token} : {};
async function login(event) {
  event.preventDefault();
  const form = new FormData(event.target);
  const reply = await fetch('/api/login', {method: 'POST', body: JSON.stringify(Object.fromEntries(form))});
  const body = await reply.json();
  if (MODE === 'token') localStorage.token = body.token;
  if (MODE === 'script') document.cookie = 'sid=' + body.token + '; path=/';
  if (reply.ok) { history.pushState(0, '', '/'); show(); } else app.querySelector('p').textContent = body.error;
}
async function show() {
  if (location.pathname === '/login') {
    app.innerHTML = '<form><input name=user><input name=pw type=password><button>go</button><p></p></form>';
    app.querySelector('form').onsubmit = login;
    return;
  }
  const reply = await fetch('/api' + location.pathname, {headers: token()});
  const item = await reply.json();
  app.innerHTML = '<h1>' + item.title + '</h1><p>' + item.text + '</p>' +
    (item.links || []).map(path => '<a href="' + path + '">' + path + '</a>').join(' ');
}
show();
</script></body></html>"""
ITEMS = 11
JOB = """apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: inside}
spec:
  seeds: ["http://app.test/"]
  politeness: {delay: 0s}
  render: always
  login:
    url: http://app.test/login
    fields:
      - {name: user, value: me}
      - {name: pw, env: NEPHILA_SECRET_PW}
    steps:
      - {type: "input[name=user]", field: user}
      - {type: "input[name=pw]", field: pw}
      - {click: button}
"""


def text_of(path: str) -> str:
    """The text of a page, which no other page has."""
    return f"The page {path} is read by members who have logged in."


class Application:
    """Every API call but the login needs the session: a cookie of a response or of a script, or a token in storage."""

    def __init__(self, mode: str, session_calls: int = 1_000) -> None:
        self.mode = mode
        self.calls: Counter[str] = Counter()
        self.logins = 0
        self.refused = 0
        self.session_calls = session_calls
        """API calls that the first session lasts."""
        self.sessions: dict[str, int] = {}

    def __call__(self, request):
        """The answer to one request."""
        path = request.path
        if path == "/robots.txt":
            return None
        if not path.startswith("/api"):
            return Reply(SHELL % json.dumps(self.mode))
        self.calls[path] += 1
        if path == "/api/login":
            if json.loads(request.body) != {"user": "me", "pw": "s3cret"}:
                return json_of({"error": "wrong password"}, 401)
            self.logins += 1
            sid = f"s{self.logins}"
            self.sessions[sid] = self.session_calls if self.logins == 1 else 1_000
            headers = {"Set-Cookie": f"sid={sid}; Path=/; HttpOnly"} if self.mode == "cookie" else {}
            return json_of({"token": sid}, 200, headers)
        headers = {name.lower(): value for name, value in request.headers.items()}
        sid = headers.get("cookie", "").partition("sid=")[2]
        if self.mode == "token":
            sid = headers.get("authorization", "").removeprefix("Bearer ")
        if self.sessions.get(sid, 0) <= 0:
            self.refused += 1
            return json_of({"error": "log in"}, 401)
        self.sessions[sid] -= 1
        links = [f"/item/{number}" for number in range(ITEMS)] if path == "/api/" else []
        return json_of({"title": path, "text": text_of(path.removeprefix("/api")), "links": links})


def json_of(content, status=200, headers=None):
    """A reply of the API."""
    return Reply(json.dumps(content), status, "application/json", headers or {})


URLS = ["http://app.test/", *(f"http://app.test/item/{number}" for number in range(ITEMS))]


def assert_complete(tmp_path) -> None:
    """Every page is stored with its own text, and the password is in no file."""
    found = {url: (outcome, text) for url, outcome, text in rows(tmp_path, "url, outcome, text")}
    assert sorted(found) == sorted(URLS)
    for url, (outcome, text) in found.items():
        assert outcome == "stored"
        assert text_of(url.removeprefix("http://app.test")) in text
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"s3cret" not in path.read_bytes(), path


@pytest.mark.parametrize("mode", ["cookie", "script", "token"])
def test_every_page_behind_a_login_by_scripts_has_its_content(tmp_path, mode):
    """The session is a cookie of a response, a cookie of a script, or a token in localStorage: one login for all."""
    (tmp_path / "job.yaml").write_text(JOB)
    application = Application(mode)
    with serve(application) as web:
        done = crawl(web, "job.yaml", cwd=tmp_path, timeout=300, NEPHILA_SECRET_PW="s3cret")  # noqa: S106
    assert done.returncode == 0, done.stderr
    assert_complete(tmp_path)
    assert (application.logins, application.refused) == (1, 0)


def test_a_session_that_scripts_find_lost_is_renewed(tmp_path):
    """401 of an XHR: the page is rendered again after one more login, and nothing is stored without content."""
    (tmp_path / "job.yaml").write_text(JOB)
    application = Application("cookie", session_calls=6)
    with serve(application) as web:
        done = crawl(web, "job.yaml", cwd=tmp_path, timeout=300, NEPHILA_SECRET_PW="s3cret")  # noqa: S106
    assert done.returncode == 0, done.stderr
    assert_complete(tmp_path)
    assert application.logins == 2


def test_a_login_by_scripts_that_is_refused_is_tried_once(tmp_path):
    """The answer of the site is the reason; nothing is stored, and the exit code is not 0."""
    (tmp_path / "job.yaml").write_text(JOB)
    application = Application("cookie")
    with serve(application) as web:
        done = crawl(web, "job.yaml", cwd=tmp_path, timeout=300, NEPHILA_SECRET_PW="wrong")  # noqa: S106
    assert rows(tmp_path) == [("http://app.test/", "failed", "login")]
    assert done.returncode != 0
    assert "401" in done.stderr
    assert application.calls["/api/login"] == 1
