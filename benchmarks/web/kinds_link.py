"""Links as people write them: relative, with a base, entities, spaces, backslashes, credentials, fragments, tracking,
other schemes, very long.

Every link here leads to a page of its own that must be reached, or to a place that must be left alone (a forbidden
host, or `/never/…`).
"""

from benchmarks.web.site import STORED, Host, Page
from benchmarks.web.town import Town

_MAYBE = (*STORED, "none")
OUTSIDE = "outside.example.test"


def build(town: Town) -> None:
    """One page of odd links per family."""
    town.site.add_host(Host(OUTSIDE, "127.0.1.50", "out of scope", forbidden=True))
    _written_oddly(town)
    _with_base(town)
    _elements(town)
    _not_for_us(town)
    _long(town)
    _international(town)


# (href as written, the path that must be requested)
_ODD = [
    ("./dot/../dotted", "/dotted"),
    ("  /spaces-around\n", "/spaces-around"),
    ("/amp?a=1&amp;b=2", "/amp?a=1&b=2"),
    ("\\back\\slash", "/back/slash"),
    ("/space in path", "/space%20in%20path"),
    ("/gr&#246;&szlig;e", "/gr%C3%B6%C3%9Fe"),
    ("/new\nline", "/newline"),
    ("/frag#a#b", "/frag"),
    ("/track?id=1&utm_source=x&gclid=y", "/track?id=1"),
    ("/query?b=2&a=1", "/query?a=1&b=2"),
    ("/double//slash", "/double//slash"),
    ("/%7euser", "/%7euser"),
    ("/pipe|d", "/pipe|d"),
    ("//{here}/scheme-relative", "/scheme-relative"),
    ("HTTP://{HERE}/Upper", "/Upper"),
    ("http://user:pass@{here}/with-credentials", "/with-credentials"),
    ("?only=query", "/?only=query"),
    ("http:/single-slash", "/single-slash"),
]


def _written_oddly(town: Town) -> None:
    host = town.host("odd links")
    here = f"{host.name}:{town.site.port}"
    for href, path in _ODD:
        town.page(host, path, "odd link", href=href.replace("{here}", here).replace("{HERE}", here.upper()))
    home = host.home
    assert home is not None
    home.hrefs += [
        "#top",
        "",
        "/track?utm_campaign=z&id=1",
        "/query?a=1&b=2",
        "/frag#c",
        f"{home.url}",
        f"http://{here}/#again",
    ]


def _with_base(town: Town) -> None:
    host = town.host("base")
    page = town.page(host, "/with-base", "base", render=_based)
    town.site.add(page, host, "/based/one", "under a base", href="one")
    town.site.add(page, host, "/two", "under a base", href="../two")


def _based(page: Page, prose: object) -> bytes:
    links = "".join(f"<p><a href={href}>x</a></p>" for href in page.hrefs)
    return f"<!DOCTYPE html><head><base href='/based/'><base href='/never/'><title>Based</title></head>{links}".encode()


def _elements(town: Town) -> None:
    """Links that are not plain anchors, and things that look like links."""
    host = town.host("elements")
    page = town.page(host, "/elements", "elements", render=_all_elements)
    for name in ("area", "iframe", "unquoted", "single", "upper", "nested"):
        town.site.add(page, host, f"/el/{name}", "element", href="")
    for name in ("nofollow", "ugc"):
        town.site.add(page, host, f"/el/{name}", "nofollow", href="", accept=_MAYBE)
    hidden = town.page(host, "/meta-nofollow", "meta nofollow", render=_meta_nofollow)
    town.site.add(hidden, host, "/el/meta-nofollow", "nofollow", href="", accept=_MAYBE)


def _all_elements(page: Page, prose: object) -> bytes:
    return (
        b"<!DOCTYPE html><title>Elements</title><map><area href='/el/area'></map><iframe src='/el/iframe'></iframe>"
        b"<a href=/el/unquoted>u</a>"
        b"<A class=x HREF = '/el/single' >s</A><A HREF=\"/el/upper\">u</A><a href='/el/nested'><div><b>n</a></div></b>"
        b"<a rel=nofollow href='/el/nofollow'>n</a><a rel='ugc noopener' href='/el/ugc'>n</a>"
        b"<!-- <a href='/never/comment'>no</a> --><script>var s = \"<a href='/never/script'>no</a>\"</script>"
        b"<style>a{background:url(/never/style)}</style><textarea><a href='/never/textarea'>no</a></textarea>"
        b"<title><a href='/never/title'></title><a name='/never/name'>n</a><p data-href='/never/data'>n</p>"
    )


def _meta_nofollow(page: Page, prose: object) -> bytes:
    return b"<!DOCTYPE html><meta name=robots content='nofollow'><title>Shy</title><a href='/el/meta-nofollow'>n</a>"


def _not_for_us(town: Town) -> None:
    host = town.host("left alone")
    home = host.home
    assert home is not None
    outside = town.site.url(OUTSIDE, "/page")
    schemes = (
        "mailto:a@web.test",
        "tel:+4912345",
        "javascript:alert(1)",
        "data:text/html,<p>x",
        "ftp://s00.web.test/x",
        "file:///etc/passwd",
    )
    broken = (
        "http://",
        "http://[::1",
        "http://s00.web.test:99999/",
        "http:// space.web.test/",
        "http://%zz.web.test/",
        "ws://s00.web.test/",
        "blob:x",
    )
    home.hrefs += [outside, *schemes, *broken, "about:blank", "urn:isbn:1"]


def _long(town: Town) -> None:
    host = town.host("long URLs")
    town.page(host, "/long/" + "x" * 1500, "URL of 1.5 KB")
    query = "/long?" + "&".join(f"p{i:03}={i}" for i in range(180))
    town.page(host, query, "180 parameters")
    accept = ("none", "dropped(trap)", "failed(*)")
    town.page(host, "/long/" + "y" * 60_000, "URL of 60 KB", accept=accept, action={"do": "body", "status": 414})


def _international(town: Town) -> None:
    """A host whose links are written in its own letters; its home hangs on another host's page."""
    host = town.host("international", name="xn--bcher-kva.web.test")
    town.page(host, "/katalog", "international", href=f"http://BÜCHER.web.test:{town.site.port}/katalog")
