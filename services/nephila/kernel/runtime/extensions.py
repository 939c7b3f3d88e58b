"""What other packages add to the crawler: a table of rows, each loaded where it is used.

The core imports no other package. A row names a module and an attribute of it as a string, and the core owns the port
(a protocol) that the attribute follows. Entry points and plugin managers were rejected: a table can be read, and a
crawl loads no more than it uses.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.extras import EXTRAS, install_line


class Extension(NamedTuple):
    target: str
    """`module:attribute`."""
    adds: str
    """What a person asks for, for the message when the package is absent."""
    library: str = ""
    """Library without which the package does not work at all; empty: none."""


EXTENSIONS: Final = {
    "archives": Extension("nephila_stores.warcs.warc_export:export_archive", "exports of WARC files"),
    "broken-links": Extension("nephila_tools.broken_links:export_broken_links", "--broken-links"),
    "browser": Extension("nephila_browser.build:build_lane", "pages rendered by a browser"),
    "browser-metrics": Extension("nephila_browser.metrics:BROWSER_METRICS", "pages rendered by a browser"),
    "browser-installation": Extension("nephila_browser.installation:missing", "pages rendered by a browser"),
    "chunk-size": Extension("nephila_stores.formats.chunks:check_chunk_size", "--format chunks"),
    "control": Extension("nephila_control.program_control:make_control", "control of a crawl that runs", "starlette"),
    "control-address": Extension("nephila_control.commands.target:tcp_address", "--api"),
    "domain-ranks": Extension("nephila_tools.host_graph.ranks:domains_by_rank", "--ranks"),
    "export-writer": Extension("nephila_stores.formats.exports:writer_of", "this format"),
    "group-answers": Extension("nephila_control.local.group_questions:GroupAnswers", "control of a crawl by groups"),
    "items-parquet": Extension("nephila_stores.formats.items_parquet:ItemsParquet", "--format parquet"),
    "login": Extension("nephila_login.site_login:SiteLogin", "spec.login"),
    "postgres-ledger": Extension("nephila_stores.postgres.ledger:Postgres", "rows in PostgreSQL"),
    "postgres-reading": Extension("nephila_stores.postgres.reading:reading", "rows in PostgreSQL"),
    "postgres-shards": Extension("nephila_stores.postgres.shards:Shards", "rows in PostgreSQL"),
    "proxies": Extension("nephila_proxies.build:make_proxy_router", "--proxy"),
    "proxy-entries": Extension("nephila_proxies.option:proxies_of", "--proxy"),
    "proxy-metrics": Extension("nephila_proxies.metrics:PROXY_METRICS", "--proxy"),
    "proxy-redaction": Extension("nephila_proxies.option:redacted", "--proxy"),
    "remote-crawl": Extension("nephila_control.commands.remote_crawl:crawl", "--bootstrap and --server"),
    "row-markdown": Extension("nephila_stores.formats.markdown_file:RowMarkdown", "--format markdown and chunks"),
    "rule-documents": Extension("nephila_rules.files:write_documents", "items by rules"),
    "rule-engine": Extension("nephila_rules.engine:make_engine", "items by rules"),
    "rule-files": Extension("nephila_rules.watch:RuleWatcher", "items by rules"),
    "rule-judge": Extension("nephila_rules.fit.judge:RuleJudge", "items by rules"),
    "rule-functions": Extension("nephila_rules.runtime.function_directory:FunctionDirectory", "functions of rules"),
    "rule-versions": Extension("nephila_rules.function_check:checked_versions", "items by rules"),
    "scheme-evaluation": Extension("nephila_harvest.schemes.evaluation:SchemeEvaluation", "spec.schemes"),
    "scheme-records": Extension("nephila_harvest.schemes.scheme_records:SchemeRecords", "spec.schemes"),
    "search": Extension("nephila_stores.search.search:find", "search"),
}
"""Extensions by name."""


def extension(name: str) -> Any:
    """The attribute of a row. Raises `UserError` if its package is not installed."""
    row = EXTENSIONS[name]
    return loaded(row.target, row.adds)


def loaded(target: str, adds: str) -> Any:
    """An attribute of a module that any package may hold. Raises `UserError` if the package is not installed."""
    module, _, attribute = target.partition(":")
    if reason := _absence(target):
        raise UserError(f"{adds}: {reason}")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise UserError(f"{adds} needs {error.name}; install it with: {install_line(extra)}") from None


def absence(name: str) -> str:
    """Why a row cannot be used, with the remedy; empty if its package is installed."""
    return _absence(EXTENSIONS[name].target)


def is_installed(name: str) -> bool:
    """Whether the package of a row is installed, and the library that it cannot do without."""
    row = EXTENSIONS[name]
    return _has_package(row.target) and (not row.library or find_spec(row.library) is not None)


def _absence(target: str) -> str:
    if _has_package(target):
        return ""
    return f"the package {_package_of(target)} is not installed; install nephila as a whole"


def _package_of(target: str) -> str:
    return target.partition(":")[0].partition(".")[0]


def _has_package(target: str) -> bool:
    package = _package_of(target)
    try:
        return package in sys.modules or find_spec(package) is not None
    except ModuleNotFoundError:
        return False
