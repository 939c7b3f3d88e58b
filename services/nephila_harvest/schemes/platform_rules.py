"""The rules of a platform: one for its pages of results (stage navigation), one for its content pages."""

from __future__ import annotations

from typing import Any

import msgspec
from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.stages import CONTENT, NAVIGATION

from nephila_harvest.schemes.platform_schema import PlatformSpec
from nephila_harvest.schemes.templates import page_parameter

SEARCH_SUFFIX = ".search"
"""Behind the platform's name: the name of the rule for its pages of results."""


def rule_names(platform: str) -> tuple[str, str]:
    """Names of its rules."""
    return platform + SEARCH_SUFFIX, platform


def rules_of(platform: str, spec: PlatformSpec) -> list[dict[str, Any]]:
    """ParseRule documents of a platform. Content pages have no further links."""
    results, search = spec.results, spec.search
    links = [{**msgspec.to_builtins(link), "stage": CONTENT} for link in results.links]
    navigation: dict[str, Any] = {"match": _match(platform, NAVIGATION), "outlinks": links}
    if results.each is not None:
        navigation["each"] = msgspec.to_builtins(results.each)
    if results.fields is not None:
        navigation["fields"] = msgspec.to_builtins(results.fields)
    pagination: dict[str, Any] = {}
    if results.next is not None:
        pagination = msgspec.to_builtins(results.next)
    elif (name := page_parameter(search)) and search.limit > 1:
        last = search.first_page + search.step * (search.limit - 1)
        pagination = {"param": name, "start": search.first_page, "step": search.step, "max": max(last, 1)}
    if pagination:
        pagination |= {"limit": search.limit, "known": results.known}
        if results.until is not None:
            pagination["until"] = msgspec.to_builtins(results.until)
        navigation["pagination"] = pagination
    content: dict[str, Any] = {"match": _match(platform, CONTENT), "outlinks": []}
    if spec.content is not None:
        content["fields"] = msgspec.to_builtins(spec.content.fields)
    return [_rule(name, rule) for name, rule in zip(rule_names(platform), (navigation, content), strict=True)]


def _match(platform: str, stage: str) -> dict[str, Any]:
    return {"url": ["."], "stage": stage, "platform": platform}


def _rule(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "ParseRule", "metadata": {"name": name}, "spec": spec}
