"""Command line switches of Chromium: every byte leaves through the gateway, and nothing runs beside the page.

The guard is the gateway; these switches close the ways around it. `tests/canary` measures that none is left.
"""

from __future__ import annotations

from nephila_browser.contract import GatewayAddress

# Ways around a proxy.
_NO_BYPASS = (
    # Loopback and link-local names go through the proxy as well: without this Chromium dials them itself.
    "--proxy-bypass-list=<-loopback>",
    # QUIC, and WebTransport over it, are UDP to the server.
    "--disable-quic",
    # WebRTC: no UDP but through a proxy, which HTTP proxies cannot carry.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--no-pings",
)
# Requests of the browser itself.
_QUIET = (
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-first-run",
)
DISABLED_FEATURES = (
    # Addresses are looked up by the gateway only.
    "AsyncDns",
    "DnsOverHttps",
    "DnsHttpsSvcb",
    "EncryptedClientHello",
    # Fetches of what a page may open next.
    "LoadingPredictorPrefetch",
    "NavigationPredictor",
    "NetworkPrediction",
    "Prerender2",
    "SpeculationRulesPrefetchFuture",
    # Requests to other URLs than the page names.
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    # Services of the browser, some of which use multicast.
    "AutofillServerCommunication",
    "DialMediaRouteProvider",
    "MediaRouter",
    "OptimizationHints",
    "Translate",
    # Pages of the window itself: each context has a window, and these took more CPU than the page in it.
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxPopup",
    # A renderer in reserve for each context, which the page never uses.
    "SpareRendererForSitePerProcess",
    # Proxied requests look local to these checks, because the gateway listens on loopback.
    "LocalNetworkAccessChecks",
    "PrivateNetworkAccessSendPreflights",
)


def chromium_flags(gateway: GatewayAddress) -> list[str]:
    """The switches of a browser whose only proxy is this gateway.

    A tool that passes --disable-features as well has to join both lists: Chromium uses the last one.
    """
    return [
        f"--proxy-server=http://{gateway.host}:{gateway.port}",
        f"--ignore-certificate-errors-spki-list={gateway.ca_spki_hash}",
        # No name is resolved in the browser, so nothing can be dialled by name even where a proxy is ignored.
        f"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE {gateway.host}",
        *_NO_BYPASS,
        *_QUIET,
        "--disable-features=" + ",".join(DISABLED_FEATURES),
    ]
