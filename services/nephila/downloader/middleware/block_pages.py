"""Recognises pages that a site sends instead of its content: challenges, captchas, ban texts, login pages. Pure.

Precision comes before recall: a page counts as blocked by a response header that only a block page has, by the markup
of a known product, or by a short page whose title and text both say so. An ordinary page leaves early: by its status
and headers, and with 2xx by its size and title. The body is read up to `SCAN_BYTES`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import re2

from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.native import PatternFilter

SCAN_BYTES = 64 << 10
PAGE_BYTES = 32 << 10
"""A page with status 2xx that is longer is content, unless a header says otherwise."""
SHORT_BYTES = 6 << 10
"""A page with status 2xx up to this size is read even if its title is ordinary."""
TITLE_BYTES = 4 << 10
"""Bytes of a page in which its title is searched."""
SHORT_TEXT = 1_200
"""Most characters of visible text in a page that its text alone shows to be a block page."""
LOGIN_BYTES = 512 << 10
"""Bytes that are read of the answer to a login."""
ERRORS = frozenset((401, 403, 405, 406, 409, 418, 429, 456, 503))
"""Statuses of block pages besides 2xx."""

HEADERS: tuple[tuple[str, str, str], ...] = (
    ("cf-mitigated", "challenge", "Cloudflare"),
    ("x-amzn-waf-action", "captcha", "AWS WAF"),
    ("x-amzn-waf-action", "challenge", "AWS WAF"),
    ("x-vercel-mitigated", "challenge", "Vercel"),
    ("x-vercel-mitigated", "deny", "Vercel"),
    ("x-sucuri-block", "", "Sucuri"),
)
"""Name, value (empty: any) and product of headers that only block pages have."""
_HEADER_NAMES = frozenset(name for name, _, _ in HEADERS)
_ERROR_HEADERS = (("x-datadome", "DataDome"), ("x-kpsdk-ct", "Kasada"))
"""Headers of products that make every 403 and 429 of their own."""

MARKUP: tuple[tuple[str, str], ...] = (
    (r"_cf_chl_opt\s*=|cf-error-details[\s\S]*?you have been blocked|/cdn-cgi/l/chk_", "Cloudflare"),
    (r"(geo|ct)\.captcha-delivery\.com", "DataDome"),
    (r"""id=["']?px-captcha|window\._pxUuid""", "HUMAN"),
    (r"Incapsula incident ID|/_Incapsula_Resource\?[^ >]*(incident_id|edet=)", "Imperva"),
    (r"errors\.edgesuite\.net/|Reference&#32;&#35;|/_sec/cp_challenge/|sec-if-cpt-container", "Akamai"),
    (r"window\.gokuProps|AwsWafIntegration\.(checkForceRefresh|getToken|forceRefreshToken)", "AWS WAF"),
    (r"window\.KPSDK\s*=", "Kasada"),
    (r"Sucuri WebSite Firewall - Access Denied|sucuri_cloudproxy_js", "Sucuri"),
    (r"/\.well-known/ddos-guard/(js-challenge|check)|<title>DDOS-GUARD</title>", "DDoS-Guard"),
    (r"detected unusual traffic from your computer network", "Google"),
    (r"/errors/validateCaptcha", "Amazon"),
    (r"The requested URL was rejected\. Please consult with your administrator", "F5"),
    (r"window\.rbzns\s*=|rbzreqid", "Reblaze"),
    (r"""id=["']?anubis_challenge""", "Anubis"),
    (r"<title>Vercel Security Checkpoint</title>", "Vercel"),
    (r"/_fs-ch-[0-9A-Za-z]+/", "Fastly"),
)
"""RE2 pattern and product: markup of block pages, not of the scripts that these products put into ordinary pages."""


def _plain(pattern: str) -> str:
    """The pattern with groups that capture nothing: RE2 has no fast path for captures."""
    return re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)


@lru_cache(maxsize=64)
def _compile(pattern: str) -> re2.Pattern:
    return re2.compile(_plain(pattern).encode())


_ANY_MARKUP = "|".join(pattern for pattern, _ in MARKUP)
_may_have_markup = PatternFilter(_plain(_ANY_MARKUP)).may_match
"""The quick search of the core: it leaves out most pages. RE2, whose search costs some 7 µs, decides about the rest."""
_BAN_TEXT = _compile(
    r"(?i)(your|this) (ip|ip address|network|device|browser|access|connection)( address)?( \S+)? "
    r"(has been|is|was) (temporarily |permanently |currently )?(blocked|banned|denied|blacklisted|rate.limited)"
    r"|you (have been|are|were) (temporarily |permanently |currently )?(blocked|banned|rate.limited)"
    r"|(verify|confirm|prove|sure)( that)? you('re|&#39;re| are)( a| not a)? (human|robot|bot|real person)"
    r"|are you a (robot|human|bot)|robot or human|pardon our interruption|checking your browser"
    r"|(automated|unusual|suspicious|bot)[- ](access|activity|traffic|requests|queries|behaviou?r)"
    r"|access( to (this|the requested) (page|site|website|resource))?( has been| was)? denied"
    r"|too many requests|please (complete|solve|enter) the (security check|captcha)"
    r"|enable (javascript|js) and (cookies|disable any ad blocker)( to continue)?"
    r"|(security|bot|human) (check|verification)|(complete|solve|enter) the captcha|request blocked"
)
_TITLE = (
    "(?i)just a moment|attention required|forbidden|blocked|captcha|interruption|challenge|denied|ddos|firewall"
    "|robot|not a bot|security|human|verif|too many|unusual|error|checkpoint|please wait|one moment|log ?in|sign ?in"
    "|anmelden|connexion"
)
"""Words of a title that make a page worth reading in full."""
_may_be_title = PatternFilter(_plain(_TITLE)).may_match
_LOGIN_TITLE = _compile(
    r"(?i)^\s*(log ?[io]n|sign ?in|member login|please log ?in|please sign ?in|anmelden|connexion)\b"
)
_CAPTCHA = _compile(
    r"""(?i)class=["']?(g-recaptcha|h-captcha|cf-turnstile|frc-captcha)|recaptcha/api\.js|hcaptcha\.com/1/api\.js"""
    r"""|challenges\.cloudflare\.com/turnstile"""
)
_SCRIPTS = _compile(r"(?is)<script\b[^>]*>.*?</script\s*>|<!--.*?-->")
_NAMED_CAPTCHA = _compile(r"""(?i)<(input|img|iframe|canvas)\b[^>]*\b(name|id|src|class)\s*=\s*["']?[^"'>]*captcha""")
_PASSWORD = _compile(r"""(?i)<input\b[^>]*type\s*=\s*["']?password""")
_UNSEEN = _compile(
    r"(?is)<script\b.*?</script\s*>|<style\b.*?</style\s*>|<template\b.*?</template|<svg\b.*?</svg|<!--.*?-->|<[^>]*>"
)
_SPACE = _compile(r"(\s|&nbsp;)+")
_LOGIN_PATH = late_pattern(r"log-?_?[io]n|sign-?_?[iu][np]|auth|account|session|regist|passw|member|sso", re.I)


LOGIN_PAGE = "a login page instead of content"
"""The kind of a page with the form of a login."""


def block_page_of(status: int, headers: Mapping[str, str], content_type: str, body: bytes, path: str) -> str:
    """The product or kind of a block page in a few words; empty: an ordinary response.

    `body` is decoded, of any status. `path` is that of the URL. `LOGIN_PAGE`: a page with a password field under a path
    that names no login. O(SCAN_BYTES); an ordinary page costs about a microsecond.
    """
    if not _HEADER_NAMES.isdisjoint(headers):
        for name, value, product in HEADERS:
            if name in headers and (not value or headers[name].lower() == value):
                return f"a challenge or ban of {product}"
    if 200 <= status < 300:
        return _of_page(content_type, body, path)
    if status in ERRORS:
        return _of_error(status, headers, body)
    return ""


def _of_page(content_type: str, body: bytes, path: str) -> str:
    size = len(body)
    if size > PAGE_BYTES or not size or (content_type and "html" not in content_type):
        return ""
    title = _title(body)
    named = _may_be_title(title) and _has_word(title)
    if size > SHORT_BYTES and not named:
        return ""
    if product := _markup(body):
        return product
    if not named:
        # Without a word in the title, only a page that is nothing but a ban text counts.
        return _of_text(body, b"", SHORT_TEXT // 4) if size <= SHORT_BYTES // 2 else ""
    return _of_text(body, title, SHORT_TEXT) or _login_page(body, title, path)


def _of_error(status: int, headers: Mapping[str, str], body: bytes) -> str:
    body = body[:SCAN_BYTES]
    if status in (403, 429):
        for name, product in _ERROR_HEADERS:
            if name in headers:
                return f"a challenge or ban of {product}"
    ban = _markup(body)
    if not ban and status not in (401, 429, 503) and len(body) <= PAGE_BYTES:
        # 401 asks for credentials, 429 and 503 are refusals anyway.
        ban = _of_text(body, _title(body), SHORT_TEXT, error=True)
    return ban


def _has_word(title: bytes) -> bool:
    return bool(_compile(_TITLE).search(title))


def _markup(body: bytes) -> str:
    if not _may_have_markup(body) or not _compile(_ANY_MARKUP).search(body):
        return ""
    # Compiled here: a crawl meets few block pages, and each start would pay for all patterns.
    products = (product for pattern, product in MARKUP if _compile(pattern).search(body))
    return next((f"a challenge or ban of {product}" for product in products), "")


def _of_text(body: bytes, title: bytes, longest: int, *, error: bool = False) -> str:
    """A ban text or a captcha in a page that has little other text; with a title, that has to say so as well."""
    if not _BAN_TEXT.search(body) or _PASSWORD.search(body):
        return ""
    text = _text(body)
    if len(text) > longest:
        return ""
    named = _BAN_TEXT.search(title)
    if _CAPTCHA.search(body) and (named or _BAN_TEXT.search(text)):
        return "a captcha"
    match = _BAN_TEXT.search(text[len(title) :] if named else text)
    if not match or (title and not named and not error and not _has_word(title)):
        return ""
    words = match.group().decode("utf-8", "replace").lower()
    if error and words in _PLAIN_ERROR:
        return ""
    return f"a ban text: {words}"


_PLAIN_ERROR = frozenset(("access denied", "too many requests"))
"""Words of an ordinary 403 and 429."""


def is_captcha_page(body: bytes) -> bool:
    """Whether a page is a captcha or a challenge and little else: by the markup of a product, or by a field or picture
    that is named so. For the answer to a login; on other pages it would be too little."""
    body = body[:LOGIN_BYTES]
    sign = _compile(_ANY_MARKUP).search(body) or _CAPTCHA.search(body) or _NAMED_CAPTCHA.search(_SCRIPTS.sub(b"", body))
    return bool(sign) and len(_text(body)) <= SHORT_TEXT


def _login_page(body: bytes, title: bytes, path: str) -> str:
    if not _LOGIN_TITLE.search(title) or not _PASSWORD.search(body) or _LOGIN_PATH.search(path):
        return ""
    return LOGIN_PAGE if len(_text(body)) <= SHORT_TEXT else ""


def _text(body: bytes) -> bytes:
    """The visible text, in bytes of the page."""
    return bytes(_SPACE.sub(b" ", _UNSEEN.sub(b" ", body)).strip())


def _title(body: bytes) -> bytes:
    """The bytes of the title, empty when there is none near the beginning."""
    start = body.find(b"<title", 0, TITLE_BYTES)
    if start < 0:
        start = body.find(b"<TITLE", 0, TITLE_BYTES)
        if start < 0:
            return b""
    start = body.find(b">", start, start + 200) + 1
    end = body.find(b"<", start, start + 300)
    return body[start:end].strip() if start and end > 0 else b""
