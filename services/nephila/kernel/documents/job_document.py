"""From a CrawlJob document to the message that all services read.

One document everywhere: a file for `nephila crawl` and `nephila jobs apply`, JSON over the control socket, a custom
resource. Invariants: every mistake is one line with its place; what is left out has the value that the command line
has; a document that went through `content` and back is the same job. Files of seeds are read by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nephila.kernel.documents import document_files
from nephila.kernel.documents.job_schema import DELAY, DOCUMENT, KIND, MAIN_TEXTS, MODES, REL, STRATEGIES
from nephila.kernel.documents.schema_types import seconds
from nephila.kernel.documents.yaml import Node, from_builtins
from nephila.kernel.messages import (
    CrawlJob,
    HostBudget,
    HostPolicy,
    Login,
    LoginField,
    Parse,
    Politeness,
    Recrawl,
    Scope,
    Traps,
)

LOGOUT = r"(?i)([/=:_.?&]|user)(log|sign)[-_]?(out|off)([/?&=#.]|$)"
"""A URL that ends a session when it is fetched."""
_SECRET = re.compile(r"pass|pwd|secret|token|pin$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class JobDocument:
    """A document that was read and found good."""

    content: dict[str, Any]
    """As JSON has it; `from_json` reads it again."""
    job: CrawlJob
    """Of generation 0; its seeds are those that are plain URLs."""
    sources: tuple[tuple[str, str], ...]
    """(file, sitemap or feed; name or URL) of the other seeds, in order."""
    sinks: tuple[str, ...]
    place: str

    @property
    def name(self) -> str:
        """The job's name and uid."""
        return self.job.uid


def load(data: bytes, name: str) -> list[JobDocument]:
    """The jobs of a file, at least one. Raises `UsageError` in one line that begins with file:line:column."""
    return document_files.load(data, name, _document, "job", KIND)


def from_json(content: Any, place: str = "job") -> JobDocument:
    """A job that comes as parsed JSON. Raises `UsageError` that names the key."""
    return _document(from_builtins(content, place))


def distinct(found: Iterable[JobDocument]) -> list[JobDocument]:
    """The same, unless two of them are one job."""
    return document_files.distinct(found, "job")


def _document(node: Node) -> JobDocument:
    content: dict[str, Any] = DOCUMENT.read(node, "")
    spec = content["spec"]
    _check_recrawl(spec, _at(_at(node, "spec"), "recrawl"))
    _check_login(spec.get("login"), _at(_at(node, "spec"), "login"))
    seeds = [next(iter(seed.items())) for seed in spec["seeds"]]
    return JobDocument(
        content,
        _job(content["metadata"]["name"], spec, [value for kind, value in seeds if kind == "url"]),
        tuple(seed for seed in seeds if seed[0] != "url"),
        tuple(dict.fromkeys(sink["type"] for sink in spec.get("sinks", ()))),
        node.place,
    )


def _at(node: Node, key: str) -> Node:
    return node.value[key].value if isinstance(node.value, dict) and key in node.value else node


def _check_recrawl(spec: dict[str, Any], node: Node) -> None:
    """What the keys of `recrawl` say only together."""
    recrawl = spec.get("recrawl")
    if recrawl is None:
        return
    if ("min" in recrawl) != ("max" in recrawl):
        raise node.error("spec.recrawl needs both min and max, or every")
    if "min" in recrawl and seconds(recrawl["min"]) > seconds(recrawl["max"]):
        raise node.error(f"spec.recrawl: min {recrawl['min']} is longer than max {recrawl['max']}")
    if "every" in recrawl and ("min" in recrawl or "schedule" in spec):
        other = "min and max" if "min" in recrawl else "schedule"
        raise node.error(f"spec.recrawl: every and {other} exclude each other")
    if not recrawl.keys() & {"min", "every"} and "schedule" not in spec:
        raise node.error("spec.recrawl says no frequency; give min and max, every, or spec.schedule")


def _check_login(login: dict[str, Any] | None, node: Node) -> None:
    """That each field has one value, and that no secret stands in the document."""
    for number, field in enumerate(login["fields"] if login else ()):
        path = f"spec.login.fields[{number}]"
        if len(field.keys() & {"value", "env", "file"}) != 1:
            raise node.error(f"{path} ({field['name'][:60]}) needs one of value, env and file")
        if "value" in field and _SECRET.search(field["name"]):
            raise node.error(
                f"{path}: {field['name'][:60]!r} looks like a secret, which would be kept with the job; "
                "give it by env or file"
            )


def protect_session(job: CrawlJob) -> None:
    """Exclude links that log out from a job that keeps cookies: fetched, they would end its session."""
    if not (job.cookies or job.login is not None):
        return
    scope = job.scope = job.scope or Scope(max_depth=-1)
    if LOGOUT not in scope.exclude:
        scope.exclude = [*scope.exclude, LOGOUT]


def _job(name: str, spec: dict[str, Any], seeds: list[str]) -> CrawlJob:
    job = _plain_job(name, spec, seeds)
    protect_session(job)
    return job


def _plain_job(name: str, spec: dict[str, Any], seeds: list[str]) -> CrawlJob:
    return CrawlJob(
        uid=name,
        name=name,
        seeds=seeds,
        scope=_scope(spec.get("scope", {})),
        politeness=_politeness(spec.get("politeness", {})),
        keep_links=spec.get("links", False),
        paused=spec.get("paused", False),
        strategy=STRATEGIES[spec.get("strategy", "bfs")],
        keywords=keywords(spec.get("keywords", ())),
        recrawl=_recrawl(spec),
        host_budget=_host_budget(spec.get("hostBudget")),
        traps=_traps(spec.get("traps")),
        weight=spec.get("weight", 0.0),
        sitemaps=spec.get("sitemaps", False),
        rules=list(dict.fromkeys(spec.get("rules", ()))),
        parse=_parse(spec.get("parse")),
        cookies=spec.get("cookies", False),
        login=_login(spec.get("login")),
    )


def _login(login: dict[str, Any] | None) -> Login | None:
    if login is None:
        return None
    fields = [
        LoginField(field["name"], field.get("value", ""), field.get("env", ""), field.get("file", ""))
        for field in login["fields"]
    ]
    return Login(login["url"], fields, login.get("check", ""), login.get("lost", ""))


def keywords(words: Iterable[str]) -> list[str]:
    """As the message has them: lower case, blanks collapsed, each once."""
    return list(dict.fromkeys(text for word in words if (text := " ".join(word.lower().split()))))


def _scope(scope: dict[str, Any]) -> Scope:
    return Scope(
        MODES[scope.get("mode", "host")],
        scope.get("include", []),
        scope.get("exclude", []),
        scope.get("maxDepth", -1),
        scope.get("maxPages", 0),
    )


def _politeness(politeness: dict[str, Any]) -> Politeness:
    return Politeness(
        seconds(politeness.get("delay", DELAY)),
        politeness.get("concurrencyPerHost", 1),
        not politeness.get("respectRobots", True),
        politeness.get("adaptive", False),
        [
            HostPolicy(host["host"], seconds(host["delay"]) if "delay" in host else -1.0, host.get("concurrency", 0))
            for host in politeness.get("hosts", ())
        ],
    )


def _recrawl(spec: dict[str, Any]) -> Recrawl | None:
    recrawl = spec.get("recrawl", {})
    if not recrawl and "schedule" not in spec:
        return None
    shortest, longest, every = (seconds(recrawl.get(name, "0")) for name in ("min", "max", "every"))
    return Recrawl(
        shortest,
        longest,
        every,
        cron=spec.get("schedule", ""),
        monitor=recrawl.get("monitor", False),
        gone_after=recrawl.get("goneAfter", 0),
    )


def _host_budget(budget: dict[str, Any] | None) -> HostBudget | None:
    if not budget:
        return None
    pages, size, queued = (budget.get(name, 0) for name in ("pages", "bytes", "queued"))
    return HostBudget(pages, size, seconds(budget.get("time", "0")), queued)


def _parse(parse: dict[str, Any] | None) -> Parse | None:
    if not parse:
        return None
    return Parse(
        list(dict.fromkeys(parse.get("follow", ()))),
        REL[parse.get("nofollow", "follow")],
        MAIN_TEXTS[parse.get("mainText", "density")],
    )


def _traps(traps: dict[str, Any] | None) -> Traps | None:
    if not traps:
        return None
    return Traps(traps.get("off", False), traps.get("capFetches", 0), traps.get("capShare", 0.0))
