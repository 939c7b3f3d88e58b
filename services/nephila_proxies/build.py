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
    for name, url in (
        ("proxy_check_url", config.proxy_check_url),
        ("proxy_check_https_url", config.proxy_check_https_url),
    ):
        try:
            if url:
                TargetUrl(url)
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
    if not 0 <= config.proxy_second_share <= 1:
        raise UsageError("proxy_second_share is a share from 0 to 1")
    if config.proxy_class != DIRECT:
        parse_selector(config.proxy_class)
    pool = ProxyPool(config.proxy_slots, config.proxy_check_s, config.proxy_anonymous)
    validator = Validator(
        fetcher,
        resolver,
        make_proxy_resolver(config, clock, allow_private=config.allow_private),
        make_proxy_resolver(config, clock, allow_private=True),
        clock,
        load_countries(config.proxy_countries),
        check_url=config.proxy_check_url,
        https_url=config.proxy_check_https_url,
        country_header=config.proxy_country_header,
        names=config.proxy_names,
        tls_verify=config.tls_verify,
        ca_file=config.ca_file,
    )
    keeper = ProxyKeeper(
        pool,
        make_sources(config.proxies, config.secrets, fetcher, resolver),
        validator,
        PoolFile(config.proxy_pool, clock),
        clock,
        collect_s=config.proxy_collect_s,
        concurrency=config.proxy_checks,
    )
    selection = ProxySelection(
        pool,
        clock,
        default=config.proxy_class,
        no_proxy=config.no_proxy,
        names=config.proxy_names,
        give_up_s=config.proxy_give_up_s,
        always_sessions=bool(config.cookies),
        on_fault=keeper.on_fault,
        second_fetches=SecondFetches(config.proxy_second_share, random.Random()),
        trusts_tls=config.tls_verify,
    )
    return ProxyRouter(resolver, selection, keeper)
