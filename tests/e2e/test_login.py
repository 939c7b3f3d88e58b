"""A crawl behind a login: by a job's form, by a cookie file, and what of it is written down."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from tests.e2e.web import Reply, crawl, page, rows, run_json, serve

FORM = Reply("<form method=post action=/session><input name=user><input type=password name=pw></form>")
PASSWORD = {"NEPHILA_SECRET_PW": "s3cret"}
WRONG = {"NEPHILA_SECRET_PW": "wrong"}
JOB = """apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: inside}
spec:
  seeds: ["http://site.test/"]
  politeness: {delay: 0s}
  login:
    url: http://site.test/login
    fields:
      - {name: user, value: me}
      - {name: pw, env: NEPHILA_SECRET_PW}
    check: Some words
"""


class Site:
    """Pages for members only. A session ends by its logout link; the first one also after `first_session` pages."""

    def __init__(self, first_session: int = 1_000, pages: int = 0) -> None:
        self.sessions: dict[str, int] = {}
        self.logins = 0
        self.first_session = first_session
        self.links = [f"/p{number}" for number in range(pages)]

    def __call__(self, request):
        """The answer to one request."""
        if request.path == "/robots.txt" or request.path == "/login":
            return FORM if request.path == "/login" else None
        if request.path == "/session":
            if parse_qs(request.body.decode()) != {"user": ["me"], "pw": ["s3cret"]}:
                return FORM
            self.logins += 1
            sid = f"s{self.logins}"
            self.sessions[sid] = self.first_session if self.logins == 1 else 1_000
            return Reply("", 302, headers={"Location": "/home", "Set-Cookie": f"sid={sid}; Path=/; HttpOnly"})
        sid = request.headers.get("Cookie", "").partition("=")[2]
        if sid not in self.sessions:
            return Reply("", 302, headers={"Location": "/login?back=1"})
        self.sessions[sid] -= 1
        if "logout" in request.path or not self.sessions[sid]:
            del self.sessions[sid]
        return page("/a", "/b", "/c", *self.links, "/user/logout", "/logout?x=1", "http://other.test/")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_crawl_behind_a_login(tmp_path, workers):
    """All pages are stored, the link that logs out is not followed, and the password is in no file."""
    (tmp_path / "job.yaml").write_text(JOB)
    site = Site()
    with serve(site) as web:
        done = crawl(web, "job.yaml", "--workers", workers, cwd=tmp_path, **PASSWORD)
    assert done.returncode == 0, done.stderr
    inside = ["/", "/a", "/b", "/c"]
    assert rows(tmp_path, "url, outcome") == [(f"http://site.test{path}", "stored") for path in inside]
    assert site.logins == 1
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"s3cret" not in path.read_bytes(), path


def test_a_session_that_expires_in_the_middle(tmp_path):
    """It is renewed at once, however young it is: all pages are stored, with exactly one new login."""
    (tmp_path / "job.yaml").write_text(JOB)
    site = Site(first_session=20, pages=40)
    with serve(site) as web:
        done = crawl(web, "job.yaml", "--workers", "0", cwd=tmp_path, **PASSWORD)
    assert done.returncode == 0, done.stderr
    inside = sorted(f"http://site.test{path}" for path in ("/", "/a", "/b", "/c", *site.links))
    assert rows(tmp_path, "url, outcome") == [(url, "stored") for url in inside]
    assert site.logins == 2


def test_a_login_that_is_refused(tmp_path):
    """The reason is said, and the account is tried once."""
    (tmp_path / "job.yaml").write_text(JOB)
    with serve(Site()) as web:
        done = crawl(web, "job.yaml", "--workers", "0", cwd=tmp_path, **WRONG)
    assert rows(tmp_path) == [("http://site.test/", "failed", "login")]
    assert "does not match spec.login.check" in done.stderr
    assert web.paths().count("/session") == 1


def test_cookies_of_a_file_and_a_secret_header(tmp_path):
    """Both reach the seeds' host alone; run.json keeps neither, and a resume asks for the header again."""
    (tmp_path / "c.txt").write_text("site.test\tFALSE\t/\tFALSE\t0\tsid\ts1\n")
    site = Site()
    site.sessions["s1"] = 1_000
    words = ("http://site.test/", "--scope", "any", "--cookies", "c.txt", "--header", "X-Key: s3cret")
    with serve(site) as web:
        done = crawl(web, *words, "--header", "Accept-Language: de", "--workers", "0", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len([row for row in rows(tmp_path) if row[1] == "stored"]) == 4
        again = crawl(web, "--resume", cwd=tmp_path)
    assert {request.headers.get("X-Key") for request in web.requests if request.host == "site.test"} == {"s3cret"}
    others = [request.headers for request in web.requests if request.host == "other.test"]
    assert others
    assert all("X-Key" not in one and "Cookie" not in one and one["Accept-Language"] == "de" for one in others)
    assert run_json(tmp_path)["options"]["header"] == ["X-Key:", "Accept-Language: de"]
    assert again.returncode == 2
    assert "--header X-Key: give its value again" in again.stderr
