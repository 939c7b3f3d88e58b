"""The proxies of a job: by a class, a country, or both. Pure.

""               as the setting proxies.default
any              every proxy
direct           none
residential      those of a class
residential/de   those of a class in a country
/de              those in a country
"""

from typing import NamedTuple

from nephila_proxies.endpoint import Endpoint

ANY, DIRECT = "any", "direct"


class Selector(NamedTuple):
    """A parsed selector; an empty part accepts everything."""

    kind: str
    country: str

    def accepts(self, kind: str, country: str) -> bool:
        """Whether a proxy of this class and country is meant."""
        return (not self.kind or self.kind == kind) and (not self.country or self.country == country)


def parse_selector(text: str) -> Selector:
    """The selector of a text that is neither empty nor `direct`."""
    kind, _, country = text.lower().partition("/")
    return Selector("" if kind == ANY else kind, country)


def accepts(selector: Selector, endpoint: Endpoint) -> bool:
    """Whether a selector means an endpoint as its list describes it."""
    return selector.accepts(endpoint.kind, endpoint.country)
