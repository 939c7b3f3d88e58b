"""Documents as clients send them."""

from __future__ import annotations

from typing import Any


def document(name: str = "news", **spec: Any) -> dict[str, Any]:
    """A job."""
    spec.setdefault("seeds", ["http://a.test/0"])
    return {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": name}, "spec": spec}


def rule(name: str = "shop", css: str = "h1") -> dict[str, Any]:
    """A rule."""
    spec = {"match": {"url": "x"}, "fields": {"title": {"css": css}}}
    return {"apiVersion": "nephila.dev/v1", "kind": "ParseRule", "metadata": {"name": name}, "spec": spec}
