"""HTTP authentication: where credentials go, where they come from, what is refused at the start."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.request import RequestHeads
from nephila.downloader.http.route import NO_ROUTE
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.auth import Auth
from nephila.downloader.middleware.config import MiddlewareConfig
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UsageError

BASIC = "Basic " + base64.b64encode("alice:pässword".encode()).decode()


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MiddlewareConfig:
    """Basic for a host, two tokens for prefixes of another one."""
    (tmp_path / "pw").write_text("pässword\n")
    monkeypatch.setenv("NEPHILA_SECRET_A", "token-a")
    monkeypatch.setenv("NEPHILA_SECRET_B", "token-b")
    return MiddlewareConfig(
        secrets=str(tmp_path),
        auth=(
            "a.test basic alice file:pw",
            "https://b.test/v1/ bearer env:NEPHILA_SECRET_A",
            "https://b.test/v1/inner/ bearer env:NEPHILA_SECRET_B",
            "http://c.test:8080/ bearer env:NEPHILA_SECRET_A",
        ),
    )


def sent(config: MiddlewareConfig, url: str) -> tuple[str | None, bytes]:
    """The header for a URL, and the head that archives show."""
    made = HttpRequest(TargetUrl(url), NO_ROUTE)
    auth = Auth(config)
    assert auth.acts_on(None)
    auth.on_request(m.FetchRequest(url=url), made)
    return made.own_headers().get("Authorization"), RequestHeads(HttpConfig()).shown(made)


@pytest.mark.parametrize(
    ("url", "value"),
    [
        ("https://a.test/x", BASIC),
        ("http://a.test/x", None),
        ("https://www.a.test/x", None),
        ("https://a.test:8443/x", None),
        ("https://a.test.evil.test/x", None),
        ("https://b.test/v1/x", "Bearer token-a"),
        ("https://b.test/v1/inner/x?y", "Bearer token-b"),
        ("https://b.test/v10/", None),
        ("http://c.test:8080/", "Bearer token-a"),
        ("http://c.test/", None),
    ],
)
def test_credentials_go_to_their_prefix_only(config: MiddlewareConfig, url: str, value: str | None) -> None:
    """Not to another scheme, port, host or path; the longest prefix counts; archives never show them."""
    header, shown = sent(config, url)
    assert header == value
    assert b"Authorization" not in shown


def test_credentials_of_a_url_come_first(config: MiddlewareConfig) -> None:
    """They were written for this URL."""
    assert sent(config, "https://me:x@a.test/")[0] is None


def test_without_entries_no_request_is_touched() -> None:
    """And the chain leaves the middleware out."""
    assert not Auth(MiddlewareConfig()).acts_on(None)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "a.test",
        "a.test basic alice",
        "a.test bearer s3cret",
        "a.test digest alice env:NEPHILA_SECRET_A",
        "a.test bearer env:HOME",
        "a.test bearer env:NEPHILA_SECRET_MISSING",
        "a.test bearer file:missing",
        "a.test bearer file:../outside",
        "ftp://a.test/ bearer env:NEPHILA_SECRET_A",
        "a.test bearer env:NEPHILA_SECRET_LINES",
    ],
)
def test_what_is_refused_at_the_start(
    line: str, config: MiddlewareConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One line, without the secret."""
    monkeypatch.setenv("NEPHILA_SECRET_LINES", "s3cret\nX: y")
    (tmp_path.parent / "outside").write_text("s3cret")
    with pytest.raises(UsageError) as caught:
        Auth(MiddlewareConfig(secrets=str(tmp_path), auth=(line,)))
    assert "downloader.middleware.auth" in str(caught.value)
    assert "s3cret" not in str(caught.value)
