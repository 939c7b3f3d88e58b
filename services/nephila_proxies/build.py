"""Builds pool, selection and keeper from the settings, as the downloader's port has them."""

from __future__ import annotations

import random

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.dns.resolvers import make_proxy_resolver
from nephila.downloader.http.contract import Fetcher
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError

from nephila_proxies.countries import load_countries
from nephila_proxies.keeper import ProxyKeeper
from nephila_proxies.pool import ProxyPool
from nephila_proxies.proxy_router import ProxyRouter
from nephila_proxies.second_fetches import SecondFetches
from nephila_proxies.selection import ProxySelection
from nephila_proxies.selector import DIRECT, parse_selector
from nephila_proxies.sources import make_sources
from nephila_proxies.store import PoolFile
from nephila_proxies.validator import Validator


def make_proxy_router(
    config: DownloaderConfig, clock: Clock, resolver: GuardedResolver, fetcher: Fetcher
) -> ProxyRouter:
    """The router through the proxies of the settings. Raises `UsageError` for settings that make no sense."""
    proxies = config.proxies
    for name, url in (
        ("proxies.check_url", proxies.check_url),
        ("proxies.check_https_url", proxies.check_https_url),
    ):
        try:
            if url:
                TargetUrl(url)
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
    if not 0 <= proxies.second_share <= 1:
        raise UsageError("proxies.second_share is a share from 0 to 1")
    if proxies.default != DIRECT:
        parse_selector(proxies.default)
    pool = ProxyPool(proxies.slots, proxies.check_s, proxies.anonymous)
    validator = Validator(
        fetcher,
        resolver,
        make_proxy_resolver(config.dns, clock, allow_private=config.dns.allow_private),
        make_proxy_resolver(config.dns, clock, allow_private=True),
        clock,
        load_countries(proxies.countries),
        check_url=proxies.check_url,
        https_url=proxies.check_https_url,
        country_header=proxies.country_header,
        names=proxies.names,
        tls_verify=config.http.tls_verify,
        ca_file=config.http.ca_file,
    )
    keeper = ProxyKeeper(
        pool,
        make_sources(proxies.sources, config.middleware.secrets, fetcher, resolver),
        validator,
        PoolFile(proxies.pool, clock),
        clock,
        collect_s=proxies.collect_s,
        concurrency=proxies.checks,
    )
    selection = ProxySelection(
        pool,
        clock,
        default=proxies.default,
        no_proxy=proxies.no_proxy,
        names=proxies.names,
        give_up_s=proxies.give_up_s,
        always_sessions=bool(config.middleware.cookies),
        on_fault=keeper.on_fault,
        second_fetches=SecondFetches(proxies.second_share, random.Random()),
        trusts_tls=config.http.tls_verify,
    )
    return ProxyRouter(resolver, selection, keeper)
