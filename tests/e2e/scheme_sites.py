"""Three hand-written platforms with search: a board in GBK, a list without end, and a JSON API; and their schemes."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, unquote_to_bytes

from tests.e2e.web import Reply, Request

PLACES = ("河南", "河北", "上海")
EVENTS = ("洪水", "地震", "台风")
SIZE = 5
GBK = "gbk"


def text_of(number: int) -> str:
    """Article `number` has one place and one event; every tenth has an exclusion."""
    words = f"{PLACES[number % 3]}昨日发生{EVENTS[number // 3 % 3]}，情况通报第{number}号。"
    return words + ("演习" if number % 10 == 0 else "")


class Sites:
    """`board.test` (GBK, pages by number), `stream.test` (a cursor) and `api.test` (JSON); `articles` on each."""

    def __init__(self, articles: int = 60) -> None:
        self.articles = articles

    def found(self, query: str) -> list[int]:
        """Articles with all words of a query, the newest first."""
        words = query.split()
        return [n for n in reversed(range(self.articles)) if all(word in text_of(n) for word in words)]

    def expected(self, host: str, groups: dict[str, list[list[str]]], exclude: str = "演习") -> set[str]:
        """Content pages of a host that match one of the groups, each a list of alternatives."""
        return {
            f"http://{host}/a/{n}"
            for n in range(self.articles)
            if exclude not in text_of(n)
            and any(all(any(word in text_of(n) for word in part) for part in parts) for parts in groups.values())
        }

    def __call__(self, request: Request) -> Reply | None:
        """The answer of all three."""
        path, _, query = request.path.partition("?")
        if path == "/robots.txt":
            return None
        if path.startswith("/a/"):
            number = int(path[3:])
            if number >= self.articles:
                return None
            page = f"<title>通报 {number}</title><h1>通报 {number}</h1><p>{text_of(number)}<a href=/other>x</a></p>"
            if request.host.startswith("board"):
                return Reply(f"<meta charset=gbk>{page}".encode(GBK), type="text/html; charset=gbk")
            return Reply(f"<meta charset=utf-8>{page}")
        return getattr(self, f"_{request.host.partition('.')[0]}", lambda *_: None)(path, query, request.body)

    def _board(self, path: str, query: str, body: bytes) -> Reply | None:
        values = {name: values[-1] for name, values in parse_qs(body.decode(), encoding=GBK).items()}
        if values.get("类") != "全部":
            return None
        page = int(values["p"])
        numbers = self.found(values["wd"])[(page - 1) * SIZE : page * SIZE]
        links = "".join(f"<li><a class=hit href=/a/{n}>{text_of(n)}</a>" for n in numbers)
        return Reply(f"<meta charset=gbk><ul>{links}</ul><a href=/help>帮助</a>".encode(GBK), type="text/html")

    def _stream(self, path: str, query: str, body: bytes) -> Reply | None:
        values = {name: values[-1] for name, values in parse_qs(query).items()}
        found = self.found(values["q"])
        after = int(values.get("after", self.articles))
        numbers = [n for n in found if n < after][:SIZE]
        links = "".join(f"<a class=hit href=/a/{n}>{n}</a> " for n in numbers)
        # A list without end: there is always a next page.
        more = numbers[-1] if numbers else after
        quoted = query.split("&")[0]
        return Reply(f"<div>{links}</div><a class=more href='/s?{quoted}&after={more}'>more</a>")

    def _api(self, path: str, query: str, body: bytes) -> Reply | None:
        values = {name: values[-1] for name, values in parse_qs(query).items()}
        page, size = int(values["page"]), int(values["size"])
        numbers = self.found(values["q"])[page * size : (page + 1) * size]
        return Reply(json.dumps({"hits": [{"url": f"/a/{n}"} for n in numbers]}), type="application/json")


def decoded(path: str, encoding: str) -> str:
    """A path with its percent-encoded bytes in an encoding."""
    return unquote_to_bytes(path.replace("+", " ")).decode(encoding)


PLATFORMS = """\
apiVersion: nephila.dev/v1
kind: Platform
metadata: {name: board}
spec:
  search:
    url: http://board.test/s
    method: POST
    form: {wd: '{keyword}', p: '{page}', 类: '全部'}
    encoding: gbk
    limit: 10
  results: {links: a.hit}
---
apiVersion: nephila.dev/v1
kind: Platform
metadata: {name: stream}
spec:
  search: {url: 'http://stream.test/s?q={keyword}', limit: 4}
  results: {links: a.hit, next: a.more}
---
apiVersion: nephila.dev/v1
kind: Platform
metadata: {name: api}
spec:
  search: {url: 'http://api.test/v1?q={keyword}&page={page}&size={size}', firstPage: 0, size: 5, limit: 10}
  results: {links: {jsonpath: '$.hits[*].url'}}
  content:
    fields:
      title: h1
      content: p
"""
SCHEME = """\
apiVersion: nephila.dev/v1
kind: CrawlScheme
metadata: {name: floods}
spec:
  platforms: [board, stream, api]
  groups:
    north: {region: {any: [河南, 河北]}, event: {any: [洪水]}}
    quakes: {event: {any: [地震]}}
  exclude: [演习]
"""
GROUPS = {"north": [["河南", "河北"], ["洪水"]], "quakes": [["地震"]]}
JOB = """\
apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: schemes}
spec:
  politeness: {delay: "0"}
"""
