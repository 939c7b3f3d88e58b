"""Single fetches without a crawl: redirects, robots.txt, and the line that says why there is no page."""

from __future__ import annotations

import pytest
from nephila.downloader.fetch_page import MAX_HOPS, SingleFetcher, config_of, fetch_page, fetch_robots
from nephila.kernel.messages import FetchKind, FetchResult
from nephila.kernel.runtime.config import replaced
from nephila.kernel.runtime.errors import UserError

from tests.e2e.web import Reply, page, serve

ROBOTS = "User-agent: *\nDisallow: /private\n"


def answer(request):
    """A web whose hosts differ in their robots.txt."""
    host, path = request.host.partition(":")[0], request.path
    if path == "/robots.txt":
        return {
            "open.test": None,
            "rules.test": Reply(ROBOTS, type="text/plain"),
            "down.test": Reply("busy", 503),
            "moved.test": Reply("", 301, headers={"Location": "http://rules.test/robots.txt"}),
        }.get(host)
    name, _, number = path.strip("/").partition("/")
    if name == "hop":
        return Reply("", 302, headers={"Location": f"/hop/{int(number) - 1}" if int(number) > 1 else "/page"})
    if name == "elsewhere":
        return Reply("", 301, headers={"Location": "http://rules.test/private/page"})
    return {
        "page": page(title="found"),
        "private": page(title="private"),
        "image": Reply(b"GIF89a", type="image/gif"),
        "error": Reply("oh", 500),
    }.get(name)


@pytest.fixture
def web():
    """The web, while the test runs."""
    with serve(answer) as running:
        yield running


@pytest.fixture
def config(web):
    """Its names lead to it."""
    return config_of(
        {
            "http.user_agent": "test-agent/1",
            "http.contact": "a@b.test",
            "dns.allow_private": True,
            "dns.host_map": [web.host_map],
        }
    )


def test_the_settings_of_single_fetches_have_no_limit_per_address(web, config):
    """Whoever fetches one page waits for nothing."""
    assert (config.limits.per_address, config.limits.address_gap_s, config.dns.allow_private) == (0, 0.0, True)
    assert (config_of({}).dns.allow_private, config_of({}).dns.host_map) == (False, ())
    fetch_page("http://open.test/page", config)
    assert web.requests[0].headers["User-Agent"] == config.http.agent()
    assert "test-agent/1" in config.http.agent()


def test_a_page_behind_redirects_has_its_last_url(web, config):
    """At most MAX_HOPS redirects are followed."""
    found = fetch_page(f"http://open.test/hop/{MAX_HOPS}", config)
    assert (found.url, found.status) == ("http://open.test/page", 200)
    assert b"found" in found.body
    assert found.fetch_no == MAX_HOPS + 1
    with pytest.raises(UserError) as refused:
        fetch_page(f"http://open.test/hop/{MAX_HOPS + 1}", config)
    assert str(refused.value) == f"http://open.test/page: more than {MAX_HOPS} redirects"
    assert web.paths().count("/page") == 1


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("gone", "failed(http_404), status 404"),
        ("error", "failed(http_500), status 500"),
    ],
)
def test_a_fetch_without_a_page_names_outcome_and_status(config, path, says):
    """As they are written everywhere."""
    with pytest.raises(UserError) as refused:
        fetch_page(f"http://open.test/{path}", config)
    assert str(refused.value) == f"http://open.test/{path}: {says}"


def test_a_fetch_without_an_answer_has_no_status(config):
    """It was refused before it was sent, or nobody answered."""
    guarded = replaced(config, {"dns.allow_private": False, "dns.host_map": ()})
    with pytest.raises(UserError) as refused:
        fetch_page("http://127.0.0.1:1/", guarded)
    assert str(refused.value) == (
        "http://127.0.0.1:1/: denied(address): a private or otherwise non-public address; --allow-private opens it"
    )
    with pytest.raises(UserError) as failed:
        fetch_page("http://127.0.0.1:1/", config)
    assert str(failed.value) == "http://127.0.0.1:1/: failed(connect)"


def test_without_robots_every_page_is_fetched(web, config):
    """The file is not even asked for."""
    assert b"private" in fetch_page("http://rules.test/private/x", config).body
    assert web.paths() == ["/private/x"]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://rules.test/private/x", "http://rules.test/private/x: denied(robots)"),
        ("http://down.test/page", "http://down.test/page: denied(robots)"),
        ("http://moved.test/private/x", "http://moved.test/private/x: denied(robots)"),
        ("http://open.test/elsewhere", "http://rules.test/private/page: denied(robots)"),
        ("http://127.0.0.1:1/page", "http://127.0.0.1:1/page: failed(connect)"),
    ],
)
def test_a_page_that_robots_txt_does_not_allow_is_not_fetched(web, config, url, says):
    """Nor one whose robots.txt is not known: the server is down, or cannot be reached. Each hop is asked for."""
    with pytest.raises(UserError) as refused:
        fetch_page(url, config, obey_robots=True)
    assert str(refused.value) == says
    assert not [path for path in web.paths() if path.startswith(("/private", "/page"))]


@pytest.mark.parametrize("url", ["http://rules.test/page", "http://open.test/page"])
def test_a_page_that_robots_txt_allows_is_fetched(web, config, url):
    """By its rules, or since there is none."""
    assert fetch_page(url, config, obey_robots=True).url == url
    assert web.paths() == ["/robots.txt", "/page"]


async def test_the_robots_txt_of_a_host_is_fetched_once(web, config):
    """For all of its URLs; another port is another host."""
    async with SingleFetcher(config) as fetcher:
        refusals = [await fetcher.refusal(f"http://rules.test/{path}") for path in ("a", "private", "b", "private/c")]
        assert refusals == ["", "robots", "", "robots"]
        assert web.paths() == ["/robots.txt"]
        await fetcher.refusal("http://rules.test:81/a")
        assert web.paths() == ["/robots.txt", "/robots.txt"]


async def test_a_private_address_is_named_by_the_fetch_of_the_page(config):
    """Its robots.txt does not refuse it, since it was never read."""
    async with SingleFetcher(replaced(config, {"dns.allow_private": False, "dns.host_map": ()})) as fetcher:
        assert await fetcher.refusal("http://127.0.0.1:1/") == ""
        outcome, found = await fetcher.fetch("http://127.0.0.1:1/")
    assert (outcome.result, outcome.reason, found) == (FetchResult.DENIED, "address", None)


async def test_the_type_counts_only_where_it_is_asked_for(config):
    """One page is fetched whatever it is; a check of links takes the types of its settings."""
    async with SingleFetcher(config) as fetcher:
        outcome, found = await fetcher.fetch("http://open.test/image")
        assert (outcome.status, found is not None and found.body) == (200, b"GIF89a")
        outcome, found = await fetcher.fetch("http://open.test/image", any_type=False)
        assert (outcome.result, found) == (FetchResult.CONTENT_TYPE, None)


async def test_each_fetch_has_a_number_of_its_own(config):
    """Two fetches of one URL do not mix."""
    async with SingleFetcher(config) as fetcher:
        first, _ = await fetcher.fetch("http://open.test/page")
        second, found = await fetcher.fetch("http://open.test/page")
        robots, none = await fetcher.fetch("http://rules.test/robots.txt", FetchKind.ROBOTS)
    assert [first.fetch_no, second.fetch_no, robots.fetch_no] == [1, 2, 3]
    assert found is not None
    assert found.fetch_no == 2
    assert (bytes(robots.body), none) == (ROBOTS.encode(), None)


@pytest.mark.parametrize(
    ("url", "address", "body", "meaning"),
    [
        ("http://rules.test/a/b?c", "http://rules.test/robots.txt", ROBOTS, "rules, status 200"),
        ("http://open.test", "http://open.test/robots.txt", "", "allow, status 404"),
        ("http://down.test:81/", "http://down.test:81/robots.txt", "", "disallow, status 503"),
    ],
)
def test_the_robots_txt_of_a_url_with_its_meaning(config, url, address, body, meaning):
    """A file that does not hold has no rules, whatever its bytes."""
    assert fetch_robots(url, config) == (address, body.encode(), meaning)


def test_a_host_that_does_not_answer_has_no_robots_txt(config):
    """In one line, with the address and the cause."""
    with pytest.raises(UserError, match=r"^http://127\.0\.0\.1:1/robots\.txt: connect \S"):
        fetch_robots("http://127.0.0.1:1/x", config)
