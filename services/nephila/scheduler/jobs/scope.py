"""Scope: which URLs belong to a job. Pure; checked once per new URL.

A scope is anchored at the seeds: at their host (mode host), registrable domain (domain) or directory (prefix). A seed
that redirects to another host adds an anchor. `include` and `exclude` are RE2 expressions, searched in the full URL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import re2

from nephila.kernel.documents.job_schema import MODES, Mode, Scope
from nephila.kernel.layout import Layout
from nephila.kernel.net.public_suffix import registrable_domain
from nephila.kernel.runtime.errors import UsageError
from nephila.native import host_digests
from nephila.scheduler.jobs.link_scope import link_scope


class ScopeVerdict(NamedTuple):
    """The decision and the rule that made it, in words."""

    admitted: bool
    rule: str


_ANY: Final = ScopeVerdict(True, "scope any")


def bare_host(host_key: str) -> str:
    """Host key without a leading www., so that a site and its www variant are one."""
    return host_key.removeprefix("www.")


def anchored_in(mode: Mode, anchors: Sequence[str], layout: Layout) -> dict[int, list[str]]:
    """Partition → those of these anchors inside which it may have URLs. All partitions may have some of a domain, else
    the partitions of the host and of its www variant. O(anchors)."""
    if mode == "domain":
        return {number: list(anchors) for number in range(layout.count)}
    hosts = [anchor.partition("/")[0] for anchor in anchors]
    parts: dict[int, list[str]] = {}
    of_host = layout.of_many(host_digests(hosts))
    of_www = layout.of_many(host_digests([f"www.{host}" for host in hosts]))
    for anchor, first, second in zip(anchors, of_host, of_www, strict=True):
        parts.setdefault(first, []).append(anchor)
        if second != first:
            parts.setdefault(second, []).append(anchor)
    return parts


def compile_patterns(patterns: Iterable[str], option: str) -> list[re2._Regexp]:
    """RE2 programs of user expressions. A bad one raises `UsageError` with option, pattern and reason."""
    options = re2.Options()
    options.log_errors = False
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re2.compile(pattern, options))
        except re2.error as error:
            reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else error
            raise UsageError(f"{option} {pattern!r} is not a valid RE2 expression: {reason}") from None
    return compiled


def _first(programs: list[re2._Regexp], url: str) -> re2._Regexp | None:
    """The first program that matches the URL."""
    if not programs:
        return None
    # Bytes: for str the binding computes the offset of each character, at three times the cost of the search.
    data = url.encode()
    return next((program for program in programs if program.search(data)), None)


class CompiledScope:
    """The scope of one job with its anchors. `decide` is O(patterns), independent of the number of anchors."""

    def __init__(self, scope: Scope, anchors: Iterable[str] = ()) -> None:
        self.mode = scope.mode
        self.max_depth = scope.max_depth
        self._include = compile_patterns(scope.include, "include")
        self._exclude = compile_patterns(scope.exclude, "exclude")
        self.anchors: set[str] = set(anchors)
        self.native = link_scope(int(MODES[scope.mode]), self.anchors, scope.include, scope.exclude)
        """The same decisions in the native core, without the depth; None where only Python has them."""
        self._hosts: set[str] = set()
        self._hosts_of = 0

    def anchor_of(self, host_key: str, path: str) -> str:
        """The anchor that a seed with this host and path adds; empty for mode any."""
        if self.mode == "host":
            return bare_host(host_key)
        if self.mode == "domain":
            return registrable_domain(host_key)
        if self.mode == "prefix":
            return bare_host(host_key) + path.partition("?")[0].rpartition("/")[0] + "/"
        return ""

    def anchors_of(self, host_keys: Iterable[str]) -> dict[str, None]:
        """The anchors that seeds on these hosts add, whatever their paths."""
        if self.mode == "host":
            return {host_key.removeprefix("www."): None for host_key in host_keys}
        return {self.anchor_of(host_key, "/"): None for host_key in host_keys}

    def add_seed(self, host_key: str, path: str) -> str:
        """Add the anchor of a seed; returns it when it is new, else the empty string."""
        anchor = self.anchor_of(host_key, path)
        if not anchor or anchor in self.anchors:
            return ""
        if self.mode == "prefix" and self._hosts_of == len(self.anchors):
            self._hosts.add(anchor.partition("/")[0])
            self._hosts_of += 1
        self.anchors.add(anchor)
        return anchor

    def is_anchor(self, host_key: str) -> bool:
        """Whether some anchor is this host, its domain, or a directory on it. O(1) amortised."""
        if self.mode == "prefix":
            if self._hosts_of != len(self.anchors):  # anchors are only ever added
                self._hosts = {anchor.partition("/")[0] for anchor in self.anchors}
                self._hosts_of = len(self.anchors)
            return bare_host(host_key) in self._hosts
        return self.anchor_of(host_key, "/") in self.anchors

    def take_over(self, old: CompiledScope) -> None:
        """Keep the anchors of an earlier scope of the same job, as far as the new mode can express them.

        A narrower mode starts without anchors: only the seeds have the directory or the host.
        """
        if old.mode == self.mode:
            self.anchors |= old.anchors
            return
        hosts = {anchor.partition("/")[0] for anchor in old.anchors}
        if self.mode == "domain":
            self.anchors |= {registrable_domain(host) for host in hosts}
        elif self.mode == "host" and old.mode == "prefix":
            self.anchors |= hosts

    def excluded(self, url: str) -> str:
        """The exclude pattern that matches, or the empty string."""
        match = _first(self._exclude, url)
        return str(match.pattern) if match is not None else ""

    def decide(self, url: str, host_key: str, depth: int = 0) -> ScopeVerdict:
        """Whether a link belongs to the job, and the rule that decided."""
        if 0 <= self.max_depth < depth:
            return ScopeVerdict(False, f"depth {depth} is beyond the limit of {self.max_depth}")
        inside = self._inside(url, host_key)
        if not inside.admitted:
            return inside
        pattern = self.excluded(url)
        if pattern:
            return ScopeVerdict(False, f"excluded by {pattern!r}")
        if self._include:
            match = _first(self._include, url)
            if match is None:
                return ScopeVerdict(False, "matches no include pattern")
            return ScopeVerdict(True, f"included by {match.pattern!r}")
        return inside

    def _inside(self, url: str, host_key: str) -> ScopeVerdict:
        mode = self.mode
        if mode == "any":
            return _ANY
        if mode == "host":
            bare = bare_host(host_key)
            return ScopeVerdict(
                bare in self.anchors, f"host {bare} is {'' if bare in self.anchors else 'not '}a seed host"
            )
        if mode == "domain":
            domain = registrable_domain(host_key)
            is_seed = domain in self.anchors
            return ScopeVerdict(is_seed, f"domain {domain} is {'' if is_seed else 'not '}a seed domain")
        return self._inside_prefix(url, bare_host(host_key))

    def _inside_prefix(self, url: str, bare: str) -> ScopeVerdict:
        path = url.split("://", 1)[-1].partition("/")[2].partition("?")[0]
        location = f"{bare}/{path}"
        # One look-up per directory above the URL: the cost is the depth of the path, not the number of anchors.
        cut = len(location)
        while (cut := location.rfind("/", 0, cut)) > 0:
            if location[: cut + 1] in self.anchors:
                return ScopeVerdict(True, f"below seed directory {location[: cut + 1]}")
        return ScopeVerdict(False, f"{location} is below no seed directory")
