"""Cookies of one session, by site (RFC 6265bis, sections 5.7 and 5.8). Pure: instants are passed in.

Invariant: a cookie is sent to the host that set it, or, with a Domain attribute, to hosts below that domain. The domain
is never a public suffix and always contains the host that set the cookie. Secure cookies are sent over https only, and
http neither sets nor replaces them. `__Secure-` and `__Host-` names are kept only with what they promise.
Bounds: `MAX_SITES` sites, `MAX_PER_SITE` cookies and `MAX_SITE_BYTES` per site, `MAX_PER_DOMAIN` per domain. The least
recently used site is evicted first. Within a site the host that has set most loses its oldest cookie. If no host has
set more than `FAIR_SHARE`, the host that came last loses one. So neither a host nor many of them evict the cookies of
a login, which comes first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable

import msgspec

from nephila.downloader.http.contract import SiteCookie
from nephila.downloader.middleware.cookie_syntax import FOREVER, SetCookie, parse_set_cookie
from nephila.kernel.net.public_suffix import is_address, is_public_suffix, site_of

MAX_SITES = 10_000
MAX_PER_SITE = 150
MAX_PER_DOMAIN = 50
"""RFC 6265bis 6.1 demands at least 50."""
FAIR_SHARE = 10
"""Cookies that a host may set beside others before it counts as the one that fills the jar."""
MAX_SITE_BYTES = 64 << 10
"""Of names and values; servers accept headers of 8 to 16 KB."""


class Cookie(msgspec.Struct, frozen=True):
    name: str
    value: str
    domain: str
    host_only: bool
    path: str
    secure: bool
    expires_at: float
    order: int
    """Sequence number of the first time the cookie was set; an update keeps it."""
    host: str
    """The host that set it."""

    def goes_to(self, host: str, path: str, secure: bool) -> bool:
        """Whether the cookie is sent with a request."""
        if self.secure and not secure:
            return False
        if host != self.domain and (self.host_only or not _is_below(host, self.domain)):
            return False
        return _matches_path(path, self.path)

    @property
    def size_bytes(self) -> int:
        """The length of name and value."""
        return len(self.name) + len(self.value)


_Site = dict[tuple[str, str, str], Cookie]


class CookieJar:
    """A cookie jar. Setting and reading are O(cookies of the site). Hosts have no port, paths no query."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._order = 0

    def __len__(self) -> int:
        return sum(map(len, self._sites.values()))

    def copy(self) -> CookieJar:
        other = CookieJar()
        other._sites = OrderedDict((site, dict(cookies)) for site, cookies in self._sites.items())
        other._order = self._order
        return other

    def set_all(self, headers: Iterable[str], host: str, path: str, secure: bool, now: float) -> None:
        """Store the cookies of the Set-Cookie headers of a response."""
        for header in headers:
            cookie = parse_set_cookie(header, now)
            if cookie is not None:
                self.set(cookie, host, path, secure, now)

    def set(self, cookie: SetCookie, host: str, path: str, secure: bool, now: float) -> bool:
        """Store a cookie that a host has set; False when the host may not set it."""
        domain, host_only = cookie.domain or host, cookie.domain is None
        if domain != host and (is_public_suffix(domain) or not _is_below(host, domain)):
            return False
        if is_address(host) or is_public_suffix(domain):
            host_only = True
        if not secure and (cookie.secure or self._hides_secure(cookie, domain, cookie.path or _default_path(path))):
            return False
        if not _keeps_promise(cookie, secure):
            return False
        self._keep(cookie, domain, host_only, cookie.path or _default_path(path), host, now)
        return True

    def _hides_secure(self, cookie: SetCookie, domain: str, path: str) -> bool:
        """Whether a cookie set over http would replace or shadow a secure one (RFC 6265bis 5.7, step 16)."""
        return any(
            stored.secure
            and stored.name == cookie.name
            and (domain == stored.domain or _is_below(domain, stored.domain) or _is_below(stored.domain, domain))
            and _matches_path(path, stored.path)
            for stored in self._sites.get(site_of(domain), {}).values()
        )

    def load(self, cookie: SetCookie, domain: str, below: bool, now: float) -> bool:
        """Store a cookie of a file; False when its domain is a public suffix."""
        if below and is_public_suffix(domain):
            return False
        self._keep(cookie, domain, not below or is_address(domain), cookie.path or "/", domain, now)
        return True

    def _keep(self, cookie: SetCookie, domain: str, host_only: bool, path: str, host: str, now: float) -> None:
        name = site_of(domain)
        site = self._sites.setdefault(name, {})
        self._sites.move_to_end(name)
        key = (domain, path, cookie.name)
        before = site.pop(key, None)
        expires_at = FOREVER if cookie.expires_at is None else cookie.expires_at
        if expires_at <= now:
            if not site:
                del self._sites[name]
            return
        self._order += 1
        order = before.order if before is not None else self._order
        site[key] = Cookie(cookie.name, cookie.value, domain, host_only, path, cookie.secure, expires_at, order, host)
        _evict(site, domain, host, now)
        if len(self._sites) > MAX_SITES:
            self._sites.popitem(last=False)

    def of_site(self, host: str, now: float) -> list[Cookie]:
        """The cookies of the site of a host, for all its hosts and paths."""
        site = self._sites.get(site_of(host), {})
        return [cookie for cookie in site.values() if cookie.expires_at > now]

    def put(self, cookie: SiteCookie, host: str, now: float) -> None:
        """Store or, with an instant that has passed, delete a cookie that a browser has accepted from a host."""
        if cookie.host_only or not is_public_suffix(cookie.domain):
            set_cookie = SetCookie(
                cookie.name, cookie.value, path=cookie.path, expires_at=cookie.expires_at, secure=cookie.secure
            )
            self._keep(set_cookie, cookie.domain, cookie.host_only, cookie.path, host, now)

    def header(self, host: str, path: str, secure: bool, now: float) -> str:
        """The value of the Cookie header for a request; empty when no cookie applies."""
        site = self._sites.get(site_of(host)) if self._sites else None
        if site is None:
            return ""
        self._sites.move_to_end(site_of(host))
        for key in [key for key, cookie in site.items() if cookie.expires_at <= now]:
            del site[key]
        cookies = [cookie for cookie in site.values() if cookie.goes_to(host, path, secure)]
        cookies.sort(key=lambda cookie: (-len(cookie.path), cookie.order))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in cookies)

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        assert len(self._sites) <= MAX_SITES, "too many sites"
        for name, site in self._sites.items():
            assert 0 < len(site) <= MAX_PER_SITE, f"{len(site)} cookies of {name}"
            assert sum(cookie.size_bytes for cookie in site.values()) <= MAX_SITE_BYTES, f"too many bytes of {name}"
            assert max(Counter(cookie.domain for cookie in site.values()).values()) <= MAX_PER_DOMAIN, name
            for key, cookie in site.items():
                assert key == (cookie.domain, cookie.path, cookie.name), f"{cookie.name} is under another key"
                assert site_of(cookie.domain) == name, f"{cookie.name} is under another site"
                assert cookie.host_only or not is_public_suffix(cookie.domain), f"{cookie.name} is for a public suffix"


def _keeps_promise(cookie: SetCookie, secure: bool) -> bool:
    """Whether a cookie has what the prefix of its name promises (RFC 6265bis 4.1.3; in any case)."""
    name = cookie.name.lower()
    if name.startswith("__host-"):
        return secure and cookie.secure and cookie.domain is None and cookie.path == "/"
    return not name.startswith("__secure-") or (secure and cookie.secure)


def _evict(site: _Site, domain: str, host: str, now: float) -> None:
    """Remove expired cookies, then those beyond the limits; `domain` and `host`: of the cookie set last. O(cookies of
    the site) per cookie removed."""
    if not _is_over(site.values(), domain):
        return
    for key in [key for key, cookie in site.items() if cookie.expires_at <= now]:
        del site[key]
    while _is_over(site.values(), domain):
        of_domain = [cookie for cookie in site.values() if cookie.domain == domain]
        cookies = of_domain if len(of_domain) > MAX_PER_DOMAIN else list(site.values())
        loser = _loser(cookies, host, by_size=len(cookies) <= MAX_PER_SITE and cookies is not of_domain)
        of_loser = [cookie for cookie in cookies if cookie.host == loser]
        # Of the same age those without Secure go first (RFC 6265bis 5.7).
        cookie = next((cookie for cookie in of_loser if not cookie.secure), of_loser[0])
        del site[cookie.domain, cookie.path, cookie.name]


def _is_over(cookies: Collection[Cookie], domain: str) -> bool:
    if len(cookies) > MAX_PER_SITE or sum(cookie.size_bytes for cookie in cookies) > MAX_SITE_BYTES:
        return True
    return sum(cookie.domain == domain for cookie in cookies) > MAX_PER_DOMAIN


def _loser(cookies: Iterable[Cookie], host: str, *, by_size: bool) -> str:
    """The host that loses one of these cookies: the one that has set most, else the other one that came last."""
    counts: Counter[str] = Counter()
    came: dict[str, int] = {}
    for cookie in cookies:
        counts[cookie.host] += cookie.size_bytes if by_size else 1
        came[cookie.host] = min(came.get(cookie.host, cookie.order), cookie.order)
    largest = max(counts, key=lambda name: (counts[name], came[name]))
    if counts[largest] > (FAIR_SHARE * MAX_SITE_BYTES // MAX_PER_SITE if by_size else FAIR_SHARE):
        return largest
    return max(came, key=lambda name: (name != host, came[name]))


def _matches_path(path: str, prefix: str) -> bool:
    """RFC 6265bis 5.1.4."""
    return path == prefix or (path.startswith(prefix) and (prefix[-1] == "/" or path[len(prefix)] == "/"))


def _is_below(host: str, domain: str) -> bool:
    return host.endswith(domain) and host[-len(domain) - 1 : -len(domain)] == "." and not is_address(host)


def _default_path(path: str) -> str:
    """RFC 6265 5.1.4: the directory of the path."""
    return path[: path.rfind("/")] or "/" if path[:1] == "/" else "/"
