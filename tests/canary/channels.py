"""The channels through which a page, a site or a name may try to reach a private address."""

from __future__ import annotations

import json
from collections.abc import Callable

HTML = "Content-Type: text/html"


def targets(scheme: str, channel: str, count: int) -> list[str]:
    """URLs of canaries, in every notation in turn, each with a path of its own."""
    forms = (
        "10.1.2.3", "127.0.0.2", "169.254.169.254", "[::1]", "localhost", "0x0a010203", "167838211", "10.66051",
        "[::ffff:10.1.2.3]", "[fd00::7]", "private-a.site.example", "127.0.0.1:8080", "192.168.7.7:8080", "0",
        "rebind-{channel}-{number}.site.example", "mixed.site.example",
    )  # fmt: skip
    return [
        f"{scheme}://{forms[number % len(forms)].format(channel=channel, number=number)}/{channel}/{number}"
        for number in range(count)
    ]


def _each(template: str) -> Callable[[list[str]], str]:
    """A page with one piece of markup per target; TARGET and JSON stand for its URL."""

    def page(urls: list[str]) -> str:
        parts = []
        for number, url in enumerate(urls):
            filled = template.replace("TARGET", url).replace("JSON", json.dumps(url))
            parts.append(filled.replace("NUMBER", str(number)))
        return "<!doctype html><title>t</title>" + "\n".join(parts)

    return page


def _script(statement: str) -> Callable[[list[str]], str]:
    """A page with one statement per target; failures of one do not stop the others."""
    return _each("<script>try{" + statement + "}catch(e){}</script>")


_RTC = """const p = new RTCPeerConnection({iceServers: [{urls: ['stun:' + u.hostname + ':3478']},
 {urls: ['turn:' + u.hostname + ':3478?transport=tcp', 'turn:' + u.hostname + ':3478'],
  username: 'a', credential: 'b'}]});
p.createDataChannel('d'); p.createOffer().then(o => p.setLocalDescription(o));"""

BROWSER: dict[str, Callable[[list[str]], str]] = {
    "sub-request: script": _each('<script src="TARGET"></script>'),
    "sub-request: image": _each('<img src="TARGET">'),
    "sub-request: style": _each('<link rel=stylesheet href="TARGET">'),
    "sub-request: media": _each('<video src="TARGET" autoplay muted></video><audio src="TARGET" autoplay></audio>'),
    "sub-request: object, embed": _each('<object data="TARGET"></object><embed src="TARGET">'),
    "sub-request: redirected": _each('<img src="/to?TARGET"><script src="/to?TARGET"></script>'),
    "iframe": _each('<iframe src="TARGET"></iframe>'),
    "iframe: redirected": _each('<iframe src="/to?TARGET"></iframe>'),
    "CSS url() and @import": _each(
        '<style>@import "TARGET";</style>'
        "<style>@font-face{font-family:f;src:url(TARGET)} p{background:url(TARGET);font-family:f}</style><p>x</p>"
    ),
    "fetch()": _script("fetch(JSON, {mode: 'no-cors'}).catch(() => 0); fetch(JSON).catch(() => 0)"),
    "fetch(): redirected": _script("fetch('/to?' + JSON).catch(() => 0)"),
    "XMLHttpRequest": _script("const x = new XMLHttpRequest(); x.open('GET', JSON); x.send()"),
    "EventSource": _script("new EventSource(JSON)"),
    "sendBeacon": _script("navigator.sendBeacon(JSON, 'x')"),
    "import()": _script("import(JSON).catch(() => 0)"),
    "worker": _script(
        "const u = JSON; const b = URL.createObjectURL(new Blob([`try{importScripts('${u}')}catch(e){};"
        "fetch('${u}',{mode:'no-cors'}).catch(()=>0)`])); new Worker(b); new SharedWorker(b)"
    ),
    "WebSocket": _script("const u = new URL(JSON); new WebSocket('ws://' + u.host + u.pathname)"),
    "WebTransport": _script("const u = new URL(JSON); new WebTransport('https://' + u.hostname + ':443/')"),
    "WebRTC (STUN, TURN)": _script("const u = new URL(JSON); " + _RTC),
    "service worker": _script("navigator.serviceWorker.register('/worker.js?' + JSON).catch(() => 0)"),
    "prefetch, preconnect, dns-prefetch": _each(
        '<link rel=prefetch href="TARGET"><link rel=preconnect href="TARGET"><link rel=dns-prefetch href="TARGET">'
        '<link rel=preload as=script href="TARGET"><link rel=modulepreload href="TARGET">'
        '<link rel=prerender href="TARGET">'
        '<link rel=icon href="TARGET"><link rel=manifest href="TARGET">'
    ),
    "speculation rules": _each(
        '<script type=speculationrules>{"prefetch":[{"source":"list","urls":["TARGET"]}],'
        '"prerender":[{"source":"list","urls":["TARGET"]}]}</script>'
    ),
    "form": lambda urls: (
        _each('<iframe name=fNUMBER></iframe><form target=fNUMBER action="TARGET" method=post></form>')(urls)
        + "<script>for (const f of document.forms) f.submit()</script>"
    ),
    "window.open": _script("window.open(JSON)"),
    "link with ping": lambda urls: (
        _each('<a href="#" ping="TARGET">x</a>')(urls) + "<script>for (const a of document.links) a.click()</script>"
    ),
}
"""Channel → page with one attempt (or more) per target."""

NAVIGATIONS: dict[str, Callable[[str], str]] = {
    "meta refresh": lambda url: f'<meta http-equiv=refresh content="0;url={url}">',
    "navigation by script": lambda url: f"<script>location = {json.dumps(url)}</script>",
    "navigation: redirected": lambda url: f"<script>location = {json.dumps('/to?' + url)}</script>",
}
"""Channel → page that leaves for one target."""
