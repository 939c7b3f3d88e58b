"""Two single-page applications, written by hand: one with hash routes, one with history routes. All content comes by
XHR; the HTML of every page is the same empty shell."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.web import Reply

SHELL = """<!doctype html><html><head><title>loading</title></head><body><div id="app"></div><script>
const hash = %s;
const route = () => hash ? location.hash.slice(2) : location.pathname.slice(1);
const href = name => (hash ? '#/' : '/') + name;
let shown = 0;
function row(item) { return '<li class="item"><b>' + item.name + '</b> <i>' + item.price + '</i></li>'; }
async function more() {
  const found = await (await fetch('/api/items?from=' + shown)).json();
  shown += found.items.length;
  document.querySelector('#items').insertAdjacentHTML('beforeend', found.items.map(row).join(''));
  if (!found.more) document.querySelector('#more').remove();
}
async function show() {
  const page = await (await fetch('/api/page/' + (route() || 'home'))).json();
  document.title = page.title;
  document.querySelector('#app').innerHTML = '<h1>' + page.title + '</h1><p>' + page.text + '</p>' +
    page.links.map(name => '<a href="' + href(name) + '">' + name + '</a>').join(' ') +
    (page.list ? '<ul id="items"></ul><button id="more">more</button>' : '');
  if (page.list) { document.querySelector('#more').onclick = more; await more(); }
}
window.onhashchange = show;
show();
</script></body></html>"""
ITEMS = 11
"""Items of the list; five come at once."""
PAGES: dict[str, dict[str, Any]] = {
    "home": {"links": ["list", "about"]},
    "list": {"links": ["one", "two"], "list": True},
    "about": {"links": []},
    "one": {"links": ["two"]},
    "two": {"links": ["home"]},
}


def text_of(host: str, name: str) -> str:
    """The text of a route, which no other route has."""
    return f"The route {name} of {host} describes its own subject in one whole sentence."


def answer(request: Any) -> Reply | None:
    """hash.test has hash routes, history.test history routes."""
    path, _, query = request.path.partition("?")
    if path == "/robots.txt":
        return Reply("User-agent: *\nDisallow: /private\n", type="text/plain")
    if path == "/api/items":
        start = int(query.partition("=")[2])
        items = [{"name": f"thing {n}", "price": f"{n}.50"} for n in range(start, min(start + 5, ITEMS))]
        return _json({"items": items, "more": start + 5 < ITEMS})
    if path.startswith("/api/page/"):
        name = path.rpartition("/")[2]
        if name not in PAGES:
            return None
        return _json({"title": f"{name} page", "text": text_of(request.host, name), "list": False, **PAGES[name]})
    if request.host == "hash.test" and path != "/":
        return None
    return Reply(SHELL % json.dumps(request.host == "hash.test"))


def _json(content: Any) -> Reply:
    return Reply(json.dumps(content), type="application/json")
