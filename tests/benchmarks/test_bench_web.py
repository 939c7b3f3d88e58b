"""The generated webs: the same every time, complete, and consistent with what the manifest promises."""

import gzip
import re
import zlib
from collections import Counter, deque
from pathlib import Path
from urllib.parse import urljoin

import pytest

from benchmarks.web import generate, plain, wire
from benchmarks.web.content import Files, GeneratedSite, canonical_target
from benchmarks.web.prose import Prose
from benchmarks.web.site import Host, Site


@pytest.fixture(scope="module")
def site() -> Site:
    """A whole hostile web, few ordinary pages."""
    return generate.build(pages=60, hosts=6)


def test_same_arguments_same_bytes(tmp_path: Path) -> None:
    """Two builds with one seed are equal byte by byte, another seed is not."""
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        generate.build(seed=seed, pages=20, hosts=2, kinds=("link", "content")).write(tmp_path / name)
    files = ("manifest.json", "site.json", "bodies.bin")
    a, b, c = ([(tmp_path / name / file).read_bytes() for file in files] for name in "abc")
    assert a == b
    assert a != c


def test_every_due_page_is_linked(site: Site) -> None:
    """Each page that needs a row hangs on a link or redirect of a page that is read, no deeper than the crawl."""
    for page in site.pages.values():
        if page.accept == ("none",) or page.url in site.seeds:
            continue
        assert page.parent is not None, page.url
        assert "denied(robots)" not in page.parent.accept, page.url
        assert page.depth <= site.max_depth, page.url


def test_extra_links_never_make_a_page_known_earlier(site: Site) -> None:
    """An ordinary page links beside its children only to pages that any crawler has seen by then: depths do not depend
    on timing.
    """
    for page in site.pages.values():
        if page.kind == "ordinary" and page.parent:
            known = {p.url for p in site.seen_by(page)} | {p.url for p in page.children}
            assert set(page.hrefs) <= known


def test_hosts_share_addresses_and_all_are_loopback(site: Site) -> None:
    """More hosts than addresses, none outside 127.0.1.x."""
    addresses = Counter(host.address for host in site.hosts.values())
    assert max(addresses.values()) > 1
    assert all(address.startswith("127.0.1.") for address in addresses)


def test_all_hostilities_are_there(site: Site) -> None:
    """What the bench must hold, by the words of its kinds."""
    kinds = {page.kind for page in site.pages.values()} | {host.kind for host in site.hosts.values()}
    for kind in (
        "429 passing",
        "500 lasting",
        "redirect",
        "endless redirect",
        "trap: calendar",
        "etag",
        "near-duplicate",
        "charset",
        "scripts only",
        "robots: BOM",
        "robots: huge",
        "robots: redirect",
        "robots: 500",
        "robots: crawl-delay",
        "never answers",
        "drips the body",
        "10 GB in chunks",
        "gzip bomb",
        "body longer than its length",
        "closes in the middle",
        "nul",
        "deep-300",
        "image/png",
        "application/pdf",
        "URL of 60 KB",
        "odd link",
        "slow",
        "robots: wildcards",
        "robots: 404",
        "out of scope",
    ):
        assert kind in kinds


def test_host_and_page_names_are_unique() -> None:
    """A second host or page of one name is a mistake of the generator, not a silent overwrite."""
    site = Site(1, 8089, 3)
    host = site.add_host(Host("a.web.test", "127.0.1.1", "x"))
    site.add(None, host, "/", "home")
    with pytest.raises(ValueError, match="twice"):
        site.add(None, host, "/", "home")
    with pytest.raises(ValueError, match="twice"):
        site.add_host(Host("a.web.test", "127.0.1.2", "x"))


def test_pages_carry_exactly_their_links() -> None:
    """No href in a page but those it was given, all of them, at about the size asked for."""
    hrefs = [f"/{n}" for n in range(97)]
    body = Prose(1).page("T", hrefs, 80_000)
    assert sorted(re.findall(rb'href="([^"]*)"', body)) == sorted(h.encode() for h in hrefs)
    assert 70_000 < len(body) < 90_000


def test_server_finds_each_page_by_other_spellings(tmp_path: Path) -> None:
    """Tracking parameters and another order of the query lead to the same page; an unknown host does not."""
    site = generate.build(pages=5, hosts=2, kinds=("link",))
    site.write(tmp_path)
    content = GeneratedSite(tmp_path)
    page = next(p for p in site.pages.values() if p.path == "/query?a=1&b=2")
    there = content.find(page.host, page.path)
    assert there["do"] == "body"
    assert there.get("status", 200) == 200
    assert content.find(page.host, "/query?b=2&utm_source=x&a=1") is there
    assert content.find("elsewhere.test", "/")["status"] == 421
    assert bytes(content.body(there)).startswith(b"<!DOCTYPE html>")


def test_canonical_target_keeps_what_matters() -> None:
    """Only tracking goes; empty values and double slashes stay."""
    assert canonical_target("/a//b?z=&a=1&gclid=2") == "/a//b?a=1&z="
    assert canonical_target("/a?utm_x=1") == "/a"


def test_plain_web_is_reachable_and_known(tmp_path: Path) -> None:
    """Every page of a plain web can be reached from page 0, and no link leaves it."""
    plain.generate(tmp_path, pages=150, hosts=7, port=8087, seed=1, size=3000, links=12)
    due = {plain.page_url(n, 7, 8087) for n in range(150)}
    seen, queue = {plain.page_url(0, 7, 8087)}, deque([plain.page_url(0, 7, 8087)])
    content = Files(tmp_path)
    while queue:
        url = queue.popleft()
        host, target = url[7:].split(":8087", 1)
        for href in re.findall(rb'href="([^"]*)"', content.body(content.find(host, target))):
            if (link := urljoin(url, href.decode())) not in seen:
                seen.add(link)
                queue.append(link)
    assert seen == due


def test_files_stay_in_their_folder(tmp_path: Path) -> None:
    """A request cannot climb out of the web."""
    (tmp_path / "web" / "h0").mkdir(parents=True)
    (tmp_path / "secret").write_text("x")
    assert Files(tmp_path / "web").find("h0", "/../../secret")["status"] == 404
    assert Files(tmp_path / "web").find("..", "/secret")["status"] == 404


def test_the_bomb_is_valid_gzip() -> None:
    """About a megabyte on the wire; its first bytes unpack to zeros and its end is sound."""
    data = wire.bomb()
    assert len(data) < 2 << 20
    assert zlib.decompressobj(31).decompress(data, 1 << 20) == bytes(1 << 20)
    small = gzip.compress(b"x", mtime=0)
    assert data[:3] == small[:3]
    assert int.from_bytes(data[-4:], "little") == wire.BOMB_BYTES


def test_retry_after_as_a_date_is_told_in_seconds() -> None:
    """The log holds how long the server asked to wait, however it said so."""
    said, seconds = wire.retry_after("date+3")
    assert said
    assert said.endswith("GMT")
    assert 1.9 < seconds <= 3
    assert wire.retry_after("2") == ("2", 2.0)
    assert wire.retry_after(None) == (None, 0.0)
