"""HTTP authentication (RFC 7617, RFC 6750) for URLs with a prefix: "PREFIX basic USER SECRET", "PREFIX bearer SECRET".

SECRET is `env:NEPHILA_SECRET_NAME` or `file:NAME`, a file inside the secrets directory; it is read once, at the start.
PREFIX is a URL such as https://api.example.org/v1/, or a host key, which means https://HOST/. Invariant: credentials
go to URLs below their prefix only, redirects included, since each request is compared with its own URL. The longest
prefix counts. Credentials in a URL take precedence.
"""

from __future__ import annotations

import base64

from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.config import MiddlewareConfig
from nephila.downloader.middleware.contract import Middleware
from nephila.downloader.middleware.secrets import SecretError, from_environment, from_file
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UsageError


class Auth(Middleware):
    """Adds the Authorization header of the longest prefix. O(entries of the host) per request."""

    def __init__(self, config: MiddlewareConfig) -> None:
        entries = [_entry(line, config.secrets) for line in config.auth]
        entries.sort(key=lambda entry: -len(entry[1]))
        self._by_origin: dict[str, list[tuple[str, str]]] = {}
        for origin, path, value in entries:
            self._by_origin.setdefault(origin, []).append((path, value))

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        return bool(self._by_origin)

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        target = http_request.target
        if target.authorization:
            return
        for path, value in self._by_origin.get(f"{target.scheme}://{target.host_header}", ()):
            if target.path.startswith(path):
                http_request.add_secret_header("Authorization", value)
                return


def _entry(line: str, secrets: str) -> tuple[str, str, str]:
    """Origin, path and header value of a line. Raises `UsageError` without the secret."""
    words = line.split()
    label = " ".join(words[:2])
    prefix, scheme, *rest = words if len(words) > 1 else ("", "")
    if (scheme, len(rest)) not in (("basic", 2), ("bearer", 1)):
        raise UsageError(
            f"downloader.middleware.auth {label!r}: expected 'PREFIX basic USER SECRET' or 'PREFIX bearer SECRET', "
            "with a SECRET of the form env:NEPHILA_SECRET_NAME or file:NAME"
        )
    try:
        target = TargetUrl(prefix if "://" in prefix else f"https://{prefix}/")
    except ValueError as error:
        raise UsageError(f"downloader.middleware.auth {label!r}: {error}") from None
    secret = _secret(rest[-1], secrets, label)
    if scheme == "basic":
        secret = base64.b64encode(f"{rest[0]}:{secret}".encode()).decode()
    elif not secret.isascii() or not secret.isprintable() or " " in secret:
        raise UsageError(f"downloader.middleware.auth {label!r}: the token has characters that no header can have")
    return f"{target.scheme}://{target.host_header}", target.path, f"{scheme.title()} {secret}"


def _secret(word: str, directory: str, label: str) -> str:
    source, _, name = word.partition(":")
    try:
        if source == "env":
            return from_environment(name)
        if source == "file":
            return from_file(name, directory)
    except SecretError as error:
        raise UsageError(f"downloader.middleware.auth {label!r}: {error}") from None
    raise UsageError(
        f"downloader.middleware.auth {label!r}: a secret has the form env:NEPHILA_SECRET_NAME or file:NAME"
    )
