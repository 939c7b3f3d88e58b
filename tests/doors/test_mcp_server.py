"""The MCP server by the SDK's own client: tools, resources, prompts, hostile pages and wrong arguments."""

from __future__ import annotations

import json
import os
import re
import sys

import pytest
from mcp import Client, StdioServerParameters
from nephila.kernel.runtime.clock import SystemClock
from nephila_doors.mcp.server import TOOLS, build_server, http_application
from nephila_doors.untrusted import marked, visible

from tests.control.http.asgi import AsgiClient
from tests.doors.adapter_rig import INJECTION, running
from tests.e2e.web import Reply, serve


async def called(client, tool, /, **arguments):
    """(text of the answer, whether it is an error)."""
    answer = await client.call_tool(tool, arguments)
    return answer.content[0].text, bool(answer.is_error)


def goods(request):
    """Five goods of one template, and a list of them."""
    if request.path == "/robots.txt":
        return Reply("User-agent: *\nAllow: /\n", type="text/plain")
    if request.path == "/":
        boxes = "".join(
            f'<li class=box><a href="/p/{n}">Tea {n}</a> <b class=cost>{n}.50 EUR</b></li>' for n in range(5)
        )
        return Reply(f"<title>Shop</title><h1>Shop</h1><ul>{boxes}</ul>")
    number = request.path.removeprefix("/p/")
    if not number.isdigit():
        return None
    return Reply(
        f"<title>{number}</title><h1 class=name>Tea {number}</h1><p>Price <b class=cost>{number}.50 EUR</b></p>"
        f"<p>Many words about tea number {number}.</p>"
    )


async def test_an_agent_proposes_tries_and_applies_a_rule(tmp_path):
    async with running(tmp_path, goods) as rig:
        server, tools = build_server(rig.control, SystemClock())
        async with Client(server) as client:
            for number in range(3):
                await called(client, "read_page", url=f"http://{'abc'[number]}.test/p/{number}")
            values = {"name": "Tea 1", "price": "1.50 EUR"}
            text, failed = await called(client, "propose_rule", url="http://b.test/p/1", values=values)
            assert not failed, text
            proposed = json.loads(text)
            assert proposed["problem"] == ""
            assert proposed["values"][0]["items"][0]["name"] == "Tea 1"
            assert [one["here"] for one in proposed["fields"]] == [1, 1]
            assert proposed["verdict"] == "created"
            draft = proposed["draft"] | {"pattern": "/p/[0-9]+$"}
            draft["fields"][0]["take"] = {"source": "css", "expression": "h1"}
            text, failed = await called(client, "try_rule", draft=draft)
            assert not failed, text
            tried = json.loads(text)
            assert tried["matching_pages"] == 3
            assert {row["items"][0]["name"] for row in tried["values"]} == {"Tea 0", "Tea 1", "Tea 2"}
            text, failed = await called(client, "apply_rule", rule=tried["document"])
            assert not failed, text
            assert '"created"' in text
            text, failed = await called(client, "propose_rule", url="http://b.test/p/1", values={"name": "Tae 1"})
            assert (failed, "near: 'Tea 1'" in text) == (True, True)
            text, failed = await called(client, "try_rule", draft={"url": "http://b.test/p/1", "mode": "fly"})
            assert failed
            listed = {"name": ["Tea 0", "Tea 1"], "price": "0.50 EUR"}
            text, failed = await called(
                client, "propose_rule", url="http://d.test/", values=listed, one_item_per_box=True
            )
            assert not failed, text
            found = json.loads(text)["values"][0]
            assert found["total"] == 5
            assert found["items"][1] == {"name": "Tea 1", "price": "1.5 EUR"}
            prompt = await client.get_prompt("extract_fields", {"url": "http://b.test/p/1", "fields": "name, price"})
            assert "propose_rule" in prompt.messages[0].content.text
        await tools.scrapes.close()


async def test_an_agent_reads_maps_crawls_and_asks(tmp_path):
    async with running(tmp_path) as rig:
        server, tools = build_server(rig.control, SystemClock())
        async with Client(server) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
            text, failed = await called(client, "read_page", url="http://a.test/green")
            assert not failed
            assert "title: Green tea" in text
            assert "# Green tea" in text
            text, failed = await called(client, "start_crawl", url="http://b.test/", name="teas", max_pages=5)
            assert not failed
            for _ in range(3):
                text, _ = await called(client, "crawl_status", name="teas", wait_s=20)
            assert '"stored": 4' in text  # three pages and the sitemap
            assert '"ended": true' in text
            assert '"failed(http_404)": 1' in text
            text, _ = await called(client, "list_pages", crawl="teas", search="black")
            assert "http://b.test/black" in text
            text, _ = await called(client, "search_pages", query="oxidised -green")
            assert "http://b.test/black" in text
            assert "http://b.test/green" not in text
            text, failed = await called(client, "search_pages", query='"oxidised')
            assert (failed, "not closed" in text) == (True, True)
            text, _ = await called(client, "explain_url", url="http://b.test/hidden", crawl="teas")
            assert '"kind": "failed"' in text or "404" in text
            text, _ = await called(client, "list_changes", crawl="teas", limit=2)
            assert text.count('"change": "new"') == 2
            text, _ = await called(client, "map_site", url="http://b.test/", search="hidden")
            assert "http://b.test/hidden" in text
            found = await client.read_resource("nephila://page/http://a.test/green")
            assert "Green tea" in found.contents[0].text
            assert '"kind": "up"' in (await client.read_resource("nephila://status")).contents[0].text
            assert '"maxPages": 5' in (await client.read_resource("nephila://crawls/teas")).contents[0].text
            prompt = await client.get_prompt("why_not_crawled", {"url": "http://b.test/x", "crawl": "teas"})
            assert "explain_url" in prompt.messages[0].content.text
        await tools.scrapes.close()


async def test_text_of_a_page_is_marked_and_cannot_close_the_mark(tmp_path):
    async with running(tmp_path) as rig:
        server, tools = build_server(rig.control, SystemClock())
        async with Client(server) as client:
            text, _ = await called(client, "read_page", url="http://a.test/black")
            mark = re.search(r"^<(untrusted-[0-9a-f]{16}) ", text, re.MULTILINE)[1]
            assert text.rstrip().endswith(f"</{mark}>")
            assert text.count(f"</{mark}>") == 1
            inside = text[text.index(f"<{mark}") : text.rindex(f"</{mark}>")]
            assert INJECTION in inside
            first, _ = await called(client, "read_page", url="http://b.test/long", max_chars=1000)
            assert len(first) < 2000
            assert "the rest begins at start=1000" in first
            last, _ = await called(client, "read_page", url="http://b.test/long", start=149_500, max_chars=50_000)
            assert "the rest begins" not in last
        await tools.scrapes.close()


@pytest.mark.parametrize(
    ("name", "arguments", "part"),
    [
        ("read_page", {"url": "http://c.test/private/x"}, "denied(robots)"),
        ("read_page", {"url": "javascript:alert(1)"}, "not a URL"),
        ("read_page", {"url": "http://a.test/", "max_chars": 10**9}, "less than or equal"),
        ("read_page", {"address": "http://a.test/"}, "url"),
        ("crawl_status", {"name": "none"}, "there is no job 'none'"),
        ("start_crawl", {"url": "http://a.test/", "name": "../x"}, "name"),
        ("start_crawl", {"url": "http://a.test/", "name": "x", "include": ["("]}, "include"),
        ("list_changes", {"since": "x y"}, "$.since"),
        ("apply_rule", {"rule": {"kind": "x"}}, "rule"),
        ("no_such_tool", {}, "no_such_tool"),
    ],
)
async def test_a_refusal_is_one_line_for_the_model(tmp_path, name, arguments, part):
    async with running(tmp_path) as rig:
        server, tools = build_server(rig.control, SystemClock())
        async with Client(server) as client:
            text, failed = await called(client, name, **arguments)
            assert failed
            assert part in text
            assert "Traceback" not in text
        await tools.scrapes.close()


async def test_over_http_only_with_the_token(tmp_path):
    async with (
        running(tmp_path) as rig,
        http_application(rig.control, SystemClock(), "0123456789abcdef", "127.0.0.1") as application,
    ):
        client = AsgiClient(application)
        for headers in ({}, {"authorization": "Bearer 0123456789abcdee"}, {"authorization": "Basic x"}):
            answer = await client._request("POST", "/mcp", b"{}", {"host": "127.0.0.1:80", **headers})
            assert answer.status_code == 401
        good = {"host": "127.0.0.1:80", "authorization": "Bearer 0123456789abcdef"}
        answer = await client._request("POST", "/mcp", b"no json", {**good, "content-type": "application/json"})
        assert answer.status_code in (400, 406)
        answer = await client._request("POST", "/mcp", b"{}", {**good, "host": "evil.example"})
        assert answer.status_code in (400, 421)


async def test_the_program_ends_with_its_input(tmp_path):
    """The command over standard input and output, by the SDK's client; the directory is free afterwards."""
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "nephila", "mcp", "--out", str(tmp_path / "o"), "--allow-private"]
    )
    async with Client(command) as client:
        text, failed = await called(client, "list_crawls")
        assert (failed, '"total": 0' in text) == (False, True)
    assert '"state": "stopped"' in (tmp_path / "o" / "run.json").read_text()


def test_hidden_characters_are_removed():
    assert visible("a\u202eb\u200bc\U000e0041d\x1b[31m\ne\tf") == "abcd[31m\ne\tf"
    assert marked("x", "http://a/\n</y>").count("\n") == 3


async def test_the_end_of_a_crawl_is_told_whatever_ends_it(tmp_path):
    """A limit, and a pause: a wait for the end returns at once then."""

    def endless(request):
        links = "".join(f'<a href="{request.path.rstrip("/")}/{n}">to</a> ' for n in range(5))
        return None if request.path == "/robots.txt" else Reply(f"<title>x</title><p>words {links}")

    async with running(tmp_path, endless) as rig:
        server, tools = build_server(rig.control, SystemClock())
        async with Client(server) as client:
            await called(client, "start_crawl", url="a.test", name="few", max_pages=3)
            text, _ = await called(client, "crawl_status", name="few", wait_s=60)
            assert (json.loads(text)["state"], json.loads(text)["ended"]) == ("limit", True)
            await called(client, "start_crawl", url="b.test", name="much", max_pages=1_000_000)
            await called(client, "pause_crawl", name="much")
            text, _ = await called(client, "crawl_status", name="much", wait_s=60)
            assert (json.loads(text)["state"], json.loads(text)["ended"]) == ("paused", True)
        await tools.scrapes.close()


@pytest.mark.full
async def test_a_rule_is_proposed_in_a_directory_that_the_program_made(tmp_path):
    """Without an option: it keeps the bodies of pages."""
    with serve(goods) as web:
        options = ["--allow-private", "--host-map", web.host_map]
        args = ["-m", "nephila", "mcp", "--out", str(tmp_path / "o"), *options]
        environment = {**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"]}
        async with Client(StdioServerParameters(command=sys.executable, args=args, env=environment)) as client:
            text, failed = await called(client, "propose_rule", url="a.test/p/1", values={"name": "Tea 1"})
    assert not failed, text
    assert json.loads(text)["values"][0]["items"][0]["name"] == "Tea 1"
