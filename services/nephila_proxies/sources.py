"""The collector: where proxies come from. One protocol for proxies in the settings, files, lists on the web, and APIs.

Each entry of the setting `proxies` is a source:

    http://user:password@203.0.113.9:3128 class=datacenter country=de      one proxy
    file /etc/nephila/proxies.txt class=residential                        a file, one proxy a line, read when changed
    list https://provider.example/list.txt token=provider                  the same over HTTP
    json https://provider.example/api path=data.items token=provider       an API: objects, or lines, below a path

`class` and `country` apply to proxies without their own. `token` names a file in the directory `secrets`: its text is
the credential of the request. A line that is no proxy is skipped and counted; `#` begins a comment. A page with tables
of addresses and ports is a list as well (`proxy_tables.py`).

Bounds: `MAX_LIST_BYTES` of a list, `MAX_PROXIES` proxies and `MAX_SKIPPED` other lines are read. A list is read line by
line in a thread, so the event loop is free meanwhile, and the memory is that of the list and its proxies.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from nephila.downloader.dns.contract import ResolveError
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.http.contract import Fetcher, HttpRequest
from nephila.downloader.http.route import direct_route
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.net.egress import EgressError
from nephila.kernel.runtime.errors import UNREADABLE, UsageError

from nephila_proxies.endpoint import Endpoint, check_credentials, parse_endpoint, provider_of
from nephila_proxies.fetch_once import fetch_once
from nephila_proxies.pool import MAX_PROXIES
from nephila_proxies.proxy_tables import is_page, lines_of_tables

MAX_LIST_BYTES = 16 << 20
MAX_SKIPPED = 50_000
"""Lines or objects without a proxy after which a list is read no further."""
MAX_LINE_BYTES = 2000
_LINE = re.compile(rb"[^\r\n]+")
_KEYS = {
    "host": ("host", "ip", "proxy_address", "address", "hostname"),
    "port": ("port", "http_port"),
    "user": ("user", "username", "login"),
    "password": ("password", "pass"),
    "scheme": ("scheme", "protocol", "type"),
    "country": ("country_code", "country", "countryCode"),
    "class": ("class", "category"),
    "provider": ("isp", "provider", "asn_name", "as_name", "org", "organization", "carrier"),
}
"""Names of fields in the answers of providers."""


class SourceError(Exception):
    """A source cannot be read now; its proxies stay."""


class Collected(msgspec.Struct):
    """What a source has."""

    endpoints: list[Endpoint]
    skipped: int = 0
    """Lines or objects that are no proxy."""
    first_error: str = ""
    cut: bool = False
    """The list is longer; its rest is not read."""


class ProxySource(Protocol):
    """A place that proxies come from."""

    name: str
    """Its identity, without credentials."""
    stored: bool
    """Whether the pool file keeps its proxies: those of the web may be out of reach after a restart."""

    async def read(self) -> Collected | None:
        """The proxies of the source; None: no change since the last call. Raises `SourceError`."""


class StaticSource:
    """Proxies in the settings."""

    name, stored = "settings", False

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints: Sequence[Endpoint] | None = endpoints

    async def read(self) -> Collected | None:
        endpoints, self._endpoints = self._endpoints, None
        return None if endpoints is None else Collected(list(endpoints))


class FileSource:
    """A file, read again when its time or size changes."""

    stored = False

    def __init__(self, path: str, kind: str, country: str) -> None:
        self.name = f"file {path}"
        self._path = Path(path)
        self._kind, self._country = kind, country
        self._read: tuple[int, int] | None = None

    async def read(self) -> Collected | None:
        try:
            state = os.stat(self._path)
            if self._read == (state.st_mtime_ns, state.st_size):
                return None
            collected = await asyncio.to_thread(self._parse)
        except OSError as error:
            raise SourceError(error.strerror or str(error)) from None
        except ValueError as error:
            raise SourceError(str(error)) from None
        self._read = (state.st_mtime_ns, state.st_size)
        return collected

    def _parse(self) -> Collected:
        with self._path.open("rb") as file:
            data = file.read(MAX_LIST_BYTES + 1)
        collected = parse_lines(data[:MAX_LIST_BYTES], self._kind, self._country, trusted=True)
        collected.cut = collected.cut or len(data) > MAX_LIST_BYTES
        return collected


class WebSource:
    """A list or the API of a provider. Its addresses are not the operator's, so private ones are refused."""

    stored = True

    def __init__(
        self,
        url: str,
        parse: Callable[[bytes], Collected],
        fetcher: Fetcher,
        resolver: GuardedResolver,
        credential: Callable[[], str],
    ) -> None:
        self._target = TargetUrl(url)
        self.name = f"list {self._target.host_header}{self._target.path.partition('?')[0]}"
        self._parse = parse
        self._fetcher = fetcher
        self._resolver = resolver
        self._credential = credential

    async def read(self) -> Collected | None:
        target = self._target
        try:
            route = direct_route(target, *await self._resolver.resolve(target.dial_host, target.port))
            request = HttpRequest(target, route, any_type=True, max_bytes=MAX_LIST_BYTES)
            credential = self._credential()
        except (EgressError, ResolveError, OSError) as error:
            raise SourceError(str(error)) from None
        if credential:
            request.add_secret_header("Authorization", credential)
        response = await fetch_once(self._fetcher, request)
        if response.reason or response.status != 200:
            raise SourceError(response.detail or response.reason or f"status {response.status}")
        try:
            return await asyncio.to_thread(self._parse, response.body)
        except ValueError as error:
            raise SourceError(str(error)) from None


def parse_lines(data: bytes, kind: str, country: str, *, trusted: bool) -> Collected:
    """One proxy a line, or a page with tables. Raises ValueError for a page without a proxy."""
    is_table = is_page(data)
    lines = lines_of_tables(data.decode("utf-8", "replace")) if is_table else _lines(data)
    collected = _collect(lines, lambda line: parse_endpoint(line, kind=kind, country=country, trusted=trusted))
    if is_table and not collected.endpoints:
        raise ValueError(collected.first_error or "the page has no table with addresses and ports")
    return collected


def _lines(data: bytes) -> Iterator[str]:
    for match in _LINE.finditer(data):
        # A longer line is no proxy; what is left of it is skipped and counted.
        line = data[match.start() : min(match.end(), match.start() + MAX_LINE_BYTES)].decode("utf-8", "replace")
        if line := line.partition("#")[0].strip():
            yield line


def parse_json(body: bytes, path: str, kind: str, country: str) -> Collected:
    """Objects or lines below a path of keys, as `data.items`. Raises ValueError."""
    part = msgspec.Raw(body)
    try:
        for key in path.split(".") if path else ():
            keys = msgspec.json.decode(part, type=dict[str, msgspec.Raw])
            if key not in keys:
                raise ValueError(f"no {path!r} in the answer")
            part = keys[key]
        # Items stay bytes until each one is read: objects of 16 MB would take 200 MB and more.
        items = msgspec.json.decode(part, type=list[msgspec.Raw])
        return _collect(items, lambda item: _endpoint_of(msgspec.json.decode(item), kind, country))
    except msgspec.ValidationError:
        raise ValueError(f"{path or 'the answer'} is not a list") from None
    except UNREADABLE as error:
        raise ValueError(f"not JSON: {error}") from None


def _endpoint_of(item: Any, kind: str, country: str) -> Endpoint:
    if isinstance(item, str):
        return parse_endpoint(item, kind=kind, country=country)
    if not isinstance(item, dict):
        raise ValueError("not an object")
    fields = {name: next((item[key] for key in keys if item.get(key)), "") for name, keys in _KEYS.items()}
    scheme = fields["scheme"]
    if isinstance(scheme, list):
        scheme = "socks5" if scheme and all("socks" in str(name) for name in scheme) else "http"
    scheme = "http" if scheme in ("", "https") else scheme
    endpoint = parse_endpoint(
        f"{scheme}://{fields['host']}:{fields['port']}",
        kind=str(fields["class"]).lower() or kind,
        country=str(fields["country"]).lower() or country,
    )
    user, password = str(fields["user"]), str(fields["password"])
    check_credentials(user, password)
    provider = provider_of(str(fields["provider"]))
    return msgspec.structs.replace(endpoint, user=user, password=password, provider=provider)


def _collect(items: Any, parse: Callable[[Any], Endpoint]) -> Collected:
    collected = Collected([])
    names: set[str] = set()
    for item in items:
        if len(names) >= MAX_PROXIES or collected.skipped >= MAX_SKIPPED:
            collected.cut = True
            break
        try:
            endpoint = parse(item)
        except ValueError as error:
            collected.skipped += 1
            collected.first_error = collected.first_error or str(error)
            continue
        if endpoint.name not in names:
            names.add(endpoint.name)
            collected.endpoints.append(endpoint)
    return collected


def make_sources(
    entries: Sequence[str], secrets: str, fetcher: Fetcher, resolver: GuardedResolver
) -> list[ProxySource]:
    """The sources of the setting. Raises `UsageError`, whose text does not repeat the entry: it may have a password."""
    static: list[Endpoint] = []
    sources: list[ProxySource] = []
    for number, entry in enumerate(entries, 1):
        try:
            word, _, rest = entry.strip().partition(" ")
            if word not in ("file", "list", "json"):
                static.append(parse_endpoint(entry, trusted=True))
                continue
            location, options = _options(rest)
            if word == "file":
                sources.append(FileSource(location, options["class"], options["country"]))
            else:
                sources.append(_web_source(word, location, options, secrets, fetcher, resolver))
        except ValueError as error:
            raise UsageError(f"proxies: entry {number}: {error}") from None
    return [StaticSource(static), *sources]


def _options(text: str) -> tuple[str, dict[str, str]]:
    location, *words = text.split()
    options = {"class": "", "country": "", "path": "", "token": ""}
    for option in words:
        key, _, value = option.partition("=")
        if key not in options:
            raise ValueError(f"option {key[:20]!r} is unknown; known are {', '.join(options)}")
        options[key] = value.lower() if key in ("class", "country") else value
    return location, options


def _web_source(
    word: str, url: str, options: dict[str, str], secrets: str, fetcher: Fetcher, resolver: GuardedResolver
) -> WebSource:
    kind, country, path, token = (options[key] for key in ("class", "country", "path", "token"))
    if token and (not secrets or "/" in token or token.startswith(".")):
        raise ValueError("token is the name of a file in the directory that the setting secrets names")

    def credential() -> str:
        if not token:
            return ""
        text = (Path(secrets) / token).read_text("utf-8").strip()
        return text if " " in text else f"Bearer {text}"

    def parse(body: bytes) -> Collected:
        if word == "json":
            return parse_json(body, path, kind, country)
        return parse_lines(body, kind, country, trusted=False)

    return WebSource(url, parse, fetcher, resolver, credential)
