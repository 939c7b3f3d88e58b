"""Block pages as the products of many sites send them, and ordinary pages that resemble them. Written by hand."""

from __future__ import annotations

from typing import NamedTuple

HTML = "text/html"
ARTICLE = "<p>" + "The committee met on Tuesday and discussed the plan for the new harbour at length. " * 30 + "</p>"


class Sample(NamedTuple):
    """One response."""

    name: str
    body: str
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012
    path: str = "/articles/17"
    content_type: str = HTML


BLOCKED = (
    Sample(
        "Cloudflare challenge",
        "<!DOCTYPE html><html lang=en-US><head><title>Just a moment...</title><meta name=robots content=noindex></head>"
        "<body><div class=main-content><noscript>Enable JavaScript and cookies to continue</noscript></div><script>"
        "(function(){window._cf_chl_opt={cvId:'3',cZone:'shop.example',cType:'managed',cRay:'8c1f'};var a=document."
        "createElement('script');a.src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1?ray=8c1f';})();"
        "</script></body></html>",
        403,
    ),
    Sample("Cloudflare challenge by header", "", 403, {"cf-mitigated": "challenge", "server": "cloudflare"}),
    Sample(
        "Cloudflare 1020",
        "<html><head><title>Attention Required! | Cloudflare</title></head><body><div id=cf-wrapper><div "
        'id="cf-error-details" class="cf-error-details-wrapper"><h1 data-translate=block_headline>Sorry, you have been '
        "blocked</h1><h2>You are unable to access shop.example</h2></div></div></body></html>",
        403,
    ),
    Sample(
        "DataDome",
        "<html lang=en><head><title>shop.example</title><style>#cmsg{animation: A 1.5s;}</style></head><body>"
        "<p id=cmsg>Please enable JS and disable any ad blocker</p><script>var dd={'rt':'c','cid':'AHrlqAAAAAMA',"
        "'hsh':'05B30BD9055986BD2EE8F5A199D973','t':'bv','host':'geo.captcha-delivery.com'}</script>"
        "<script src=https://ct.captcha-delivery.com/c.js></script></body></html>",
        403,
    ),
    Sample(
        "DataDome for an API",
        '{"url":"https://geo.captcha-delivery.com/captcha/?initialCid=AHrlqAAAAAMA&hash=05B30BD9"}',
        403,
        content_type="application/json",
    ),
    Sample(
        "HUMAN",
        "<!DOCTYPE html><html><head><title>Access to this page has been denied</title></head><body><section "
        "class=container><h1>Please verify you are a human</h1><p>Access to this page has been denied because we "
        "believe you are using automation tools to browse the website.</p><div id=px-captcha></div></section><script>"
        "window._pxAppId='PXabcdef12';window._pxJsClientSrc='/abcdef12/init.js';</script></body></html>",
        403,
    ),
    Sample(
        "HUMAN with status 200",
        "<!DOCTYPE html><html><head><title>Robot or human?</title></head><body><h1>Robot or human?</h1><p>Activate and "
        "hold the button to confirm that you're human. Thank You!</p><div id='px-captcha'></div></body></html>",
    ),
    Sample(
        "Imperva frame",
        '<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"></head><body><iframe id='
        '"main-iframe" src="/_Incapsula_Resource?CWUDNSAI=24&xinfo=9-1234-0%200NNN&incident_id=12500070010-45&edet=12'
        '&cinfo=04000000" frameborder=0 width="100%">Request unsuccessful. Incapsula incident ID: 12500070010-45'
        "</iframe></body></html>",
    ),
    Sample(
        "Imperva interruption",
        "<!DOCTYPE html><html><head><title>Pardon Our Interruption</title></head><body><h1>Pardon Our "
        "Interruption...</h1>"
        "<p>As you were browsing something about your browser made us think you were a bot. There are a few "
        "reasons this "
        "might happen: you're a power user moving through this website with super-human speed; you've disabled "
        "cookies.</p></body></html>",
    ),
    Sample(
        "Akamai",
        "<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\n \nYou don't have "
        "permission "
        'to access "http&#58;&#47;&#47;shop&#46;example&#47;" on this '
        "server.<P>\nReference&#32;&#35;18&#46;9f0c1002&#46;"
        "1700000000&#46;2b8a<P>\nhttps&#58;&#47;&#47;errors&#46;edgesuite&#46;net&#47;18\n</BODY>\n</HTML>",
        403,
    ),
    Sample(
        "Akamai challenge",
        "<!DOCTYPE html><html><head><meta charset=utf-8><title>&nbsp;</title></head><body><div id=sec-if-cpt-container>"
        "</div><script src='/_sec/cp_challenge/sec-cpt-4-7.js' async defer></script></body></html>",
        429,
    ),
    Sample(
        "AWS WAF challenge",
        "<!DOCTYPE html><html lang=en><head><meta "
        "charset=utf-8><title></title><script>window.awsWafCookieDomainList = []"
        ";window.gokuProps = {'key':'AQIDAHjcYu/','iv':'CgAH','context':'4F'};</script><script src="
        "'https://abc.token.awswaf.com/abc/challenge.js'></script></head><body><div "
        "id=challenge-container></div><script>"
        "AwsWafIntegration.saveReferrer();AwsWafIntegration.checkForceRefresh().then(f=>f);</script></body></html>",
        202,
    ),
    Sample("AWS WAF by header", "", 405, {"x-amzn-waf-action": "captcha"}),
    Sample(
        "Kasada",
        "<!DOCTYPE html><html><head></head><body><script>window.KPSDK={};KPSDK.now=typeof performance!=='undefined';"
        "</script><script src='/149e9513-01fa-4fb0-aad4-566afd725d1b/2d206a39/ips.js?x=1'></script></body></html>",
        429,
    ),
    Sample(
        "Sucuri",
        "<html><head><title>Sucuri WebSite Firewall - Access Denied</title></head><body><h1>Access Denied - Sucuri "
        "Website Firewall</h1><p>If you are the site owner, please contact us.</p></body></html>",
        403,
    ),
    Sample(
        "DDoS-Guard",
        "<!DOCTYPE html><html lang=en><head><title>DDoS-Guard</title><script>var ddg_l10n={};</script></head><body><h1>"
        "Checking your browser before accessing shop.example</h1><script src='/.well-known/ddos-guard/js-challenge/"
        "index.js'></script></body></html>",
        403,
    ),
    Sample(
        "Google",
        "<html><head><title>https://www.google.com/search?q=a</title></head><body><div>About this "
        "page<br><br>Our systems "
        "have detected unusual traffic from your computer network. This page checks to see if it&#39;s really "
        "you sending "
        "the requests, and not a robot.</div></body></html>",
        429,
    ),
    Sample(
        "Amazon",
        "<!doctype html><html class=a-no-js><head><title dir=ltr>Amazon.com</title></head><body><h4>Enter the "
        "characters "
        "you see below</h4><p>Sorry, we just need to make sure you're not a robot.</p><form method=get "
        "action='/errors/validateCaptcha' name=''><img "
        "src='https://images.example/captcha/x.jpg'></form></body></html>",
    ),
    Sample(
        "F5",
        "<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult "
        "with your "
        "administrator.<br><br>Your support ID is: 1234567890<br><br><a href='javascript:history.back();'>[Go Back]</a>"
        "</body></html>",
    ),
    Sample(
        "Anubis",
        "<!doctype html><html lang=en><head><title>Making sure you&#39;re not a bot!</title></head><body "
        "id=top><main><h1>"
        'Making sure you&#39;re not a bot!</h1><p id="status">Loading...</p></main><script id="anubis_challenge" '
        'type="application/json">{"rules":{"difficulty":4},"challenge":"4f"}</script></body></html>',
    ),
    Sample(
        "Vercel",
        "<!DOCTYPE html><html lang=en><head><title>Vercel Security Checkpoint</title></head><body><p>We're "
        "verifying your "
        "browser</p></body></html>",
        429,
    ),
    Sample(
        "a captcha of the site",
        "<html><head><title>Security check</title></head><body><h1>Are you a human?</h1><form method=post><div "
        "class='g-recaptcha' data-sitekey=6Lc></div><input type=submit></form><script src="
        "'https://www.google.com/recaptcha/api.js'></script></body></html>",
    ),
    Sample(
        "a Turnstile of the site",
        "<html><head><title>One moment, please...</title></head><body><p>Please complete the security check to access "
        "forum.example</p><div class=cf-turnstile data-sitekey=0x4></div></body></html>",
    ),
    Sample(
        "a ban with status 200",
        "<html><head><title>Blocked</title></head><body><h1>Your IP address 203.0.113.7 has been "
        "blocked</h1><p>Contact "
        "the webmaster if you think that this is an error.</p></body></html>",
    ),
    Sample("a ban without a title", "<html><body>You have been banned.</body></html>"),
    Sample(
        "a ban as text of a 403",
        "<html><head><title>403</title></head><body><p>Automated access to this site is not "
        "permitted.</p></body></html>",
        403,
    ),
    Sample(
        "a limit with status 200",
        "<html><head><title>Too many requests</title></head><body>You have sent too many requests. Please try "
        "again in an "
        "hour.</body></html>",
    ),
    Sample(
        "a login page instead of content",
        "<html><head><title>Log in | Members</title></head><body><h1>Please log in to read this</h1><form method=post "
        "action=/login><input name=user><input type=password name=pw><button>Log in</button></form></body></html>",
    ),
)
"""Responses that are no content."""

ORDINARY = (
    Sample("an article", f"<html><head><title>The harbour</title></head><body>{ARTICLE}</body></html>"),
    Sample(
        "an article about bans",
        "<html><head><title>Access denied: how sites block robots</title></head><body><h1>Access denied</h1>"
        f"<p>You have been blocked, says the page; are you a robot?</p>{ARTICLE}</body></html>",
    ),
    Sample(
        "a page behind Cloudflare's script",
        f"<html><head><title>Shop</title></head><body><p>Prices</p>{ARTICLE[:900]}<script>"
        "(function(){window.__CF$cv$params="
        "{r:'8c1f',t:'MTcw'};var "
        "a=document.createElement('script');a.src='/cdn-cgi/challenge-platform/scripts/jsd/main."
        "js'})();</script></body></html>",
    ),
    Sample(
        "a page with the tag of DataDome",
        "<html><head><title>Shop</title><script>window.ddjskey='A5';</script><script "
        "src=https://js.datadome.co/tags.js>"
        "</script></head><body><p>All prices.</p></body></html>",
    ),
    Sample(
        "a page with the script of Imperva",
        "<html><head><title>Bank</title></head><body><p>Opening hours: nine to five.</p><script "
        "src='/_Incapsula_Resource"
        "?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3&ns=1'></script></body></html>",
    ),
    Sample(
        "a contact form with a captcha",
        "<html><head><title>Contact us</title></head><body><h1>Contact</h1><form><textarea name=text></textarea><div "
        "class=g-recaptcha></div><input type=submit></form></body></html>",
    ),
    Sample(
        "a registration with a captcha",
        "<html><head><title>Sign up</title></head><body><form><input name=mail><input type=password name=pw><div "
        "class=h-captcha></div><p>Please confirm that you are human</p></form></body></html>",
        path="/register",
    ),
    Sample(
        "a login page",
        "<html><head><title>Log in</title></head><body><form method=post><input name=user><input type=password name=pw>"
        "</form></body></html>",
        path="/user/login",
    ),
    Sample(
        "an article with a login form in its head",
        "<html><head><title>Security news: new firewall</title></head><body><form><input name=u><input type=password "
        f"name=p></form>{ARTICLE}</body></html>",
    ),
    Sample("a short page", "<html><head><title>Hello</title></head><body><p>Hello, world.</p></body></html>"),
    Sample("an empty page", ""),
    Sample(
        "a product", "<html><head><title>Home security cameras</title></head><body><p>Three cameras.</p></body></html>"
    ),
    Sample("an error page with 200", "<html><head><title>Error</title></head><body><p>No such page.</p></body></html>"),
    Sample("a plain 403", "<html><head><title>403 Forbidden</title></head><body><h1>Forbidden</h1></body></html>", 403),
    Sample(
        "nginx's 403",
        "<html>\n<head><title>403 Forbidden</title></head>\n<body>\n<center><h1>403 "
        "Forbidden</h1></center>\n<hr><center>"
        "nginx</center>\n</body>\n</html>",
        403,
    ),
    Sample(
        "Apache's 403",
        "<html><head><title>403 Forbidden</title></head><body><h1>Forbidden</h1><p>You don't have permission to access "
        "this resource.</p></body></html>",
        403,
    ),
    Sample("a plain access denied", "<html><body>Access Denied</body></html>", 403),
    Sample("a 404 of a site behind DataDome", "<html><body>Not here</body></html>", 404, {"x-datadome": "protected"}),
    Sample(
        "a page of a site behind DataDome", "<html><body><p>Prices</p></body></html>", 200, {"x-datadome": "protected"}
    ),
    Sample("a 401", "<html><body><h1>Unauthorized</h1></body></html>", 401, {"www-authenticate": "Basic"}),
    Sample("a 503", "<html><head><title>503</title></head><body>Down for maintenance</body></html>", 503),
    Sample("data", '{"title": "Access denied", "text": "You have been blocked"}', content_type="application/json"),
)
"""Responses that are what they seem, errors included."""
