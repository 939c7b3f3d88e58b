"""The tenant of a CrawlJob is that of its namespace, and the log of changes names its author."""

from __future__ import annotations

from typing import Any

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.tenants.tenants import tenants
from nephila_cluster.operator.author import ANNOTATION, author_of
from nephila_cluster.operator.tenancy import Tenancy

from tests.cluster.operator.kubernetes_server import NAMESPACE
from tests.cluster.operator.test_operator import JOB, Running, running

__all__ = ["running"]
TENANTS = ("news pages=100 namespaces=press,radio", "shop share=2 namespaces=shop", "free pages=5")
TENANCY = Tenancy(tenants(TENANTS), "crawl")


def crawl_job(namespace: str, tenant: str = "") -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "namespace": namespace},
        "spec": {**JOB, **({"tenant": tenant} if tenant else {})},
    }


@pytest.mark.parametrize(
    ("namespace", "tenant", "bound", "fault"),
    [
        ("press", "", "news", ""),
        ("radio", "news", "news", ""),
        ("press", "shop", "", "the namespace press belongs to the tenant news; remove spec.tenant"),
        ("press", "free", "", "the namespace press belongs to the tenant news"),
        ("crawl", "news", "", "the tenant news belongs to the namespace press, radio; apply the job there"),
        ("", "shop", "", "the tenant shop belongs to the namespace shop"),
        ("crawl", "free", "free", ""),
        ("crawl", "", "", ""),
    ],
)
def test_a_tenant_with_namespaces_is_theirs_alone(namespace: str, tenant: str, bound: str, fault: str) -> None:
    body = crawl_job(namespace, tenant)
    assert fault in TENANCY.fault(body)
    assert bool(TENANCY.fault(body)) == bool(fault)
    if not fault:
        assert TENANCY.bound(body)["spec"].get("tenant", "") == bound


def test_a_spec_that_is_none_is_left_to_the_check_of_documents() -> None:
    for spec in (None, [], "text", {"tenant": ["news"]}):
        body = {"metadata": {"name": "a", "namespace": "press"}, "spec": spec}
        assert bool(TENANCY.fault(body)) == isinstance(spec, dict)
        assert isinstance(spec, dict) or TENANCY.bound(body) == body


@pytest.mark.parametrize(
    ("entries", "line"),
    [
        (["a namespaces=x", "b namespaces=y,x"], "the namespace x is named by a and b"),
        (["a namespaces=X"], "'X' is no name of a namespace"),
        (["a namespaces="], "'' is no name of a namespace"),
        (["a namespace=x"], "did you mean 'namespaces'"),
    ],
)
def test_namespaces_that_make_no_sense_are_refused_in_one_line(entries: list[str], line: str) -> None:
    with pytest.raises(UsageError, match=line):
        tenants(entries)


async def test_jobs_have_the_tenant_of_their_namespace_from_the_start_of_the_operator_on(running: Running) -> None:
    """Also those that were accepted before the namespace had a tenant; one with another tenant stays as it is."""
    server, control = running.server, running.control
    server.apply("crawljobs", "plain", JOB)
    server.apply("crawljobs", "other", {**JOB, "tenant": "shop"})
    async with running.operator():
        for name in ("plain", "other"):
            await server.until(lambda name=name: running.condition("crawljobs", name) == ("True", "Applied"))
    assert control.jobs["plain"].tenant == ""
    async with running.operator("two", tenants=(f"news namespaces={NAMESPACE}", "shop")):
        await server.until(lambda: control.jobs["plain"].tenant == "news")
        await server.until(lambda: running.condition("crawljobs", "other") == ("False", "Invalid"))
        assert control.jobs["other"].tenant == "shop"
        server.delete("crawljobs", "other")
        await server.until(lambda: not server.get("crawljobs", "other"))
    assert control.requests == ["apply plain", "apply other", "apply plain", "delete other"] or control.requests == [
        "apply other",
        "apply plain",
        "apply plain",
        "delete other",
    ]


def writer(manager: str, time: str, *fields: str, subresource: str = "") -> dict[str, Any]:
    return {"manager": manager, "time": time, "fieldsV1": {field: {} for field in fields}, "subresource": subresource}


MANAGERS = [
    writer("kubectl-client-side-apply", "2026-01-01T00:00:00Z", "f:metadata", "f:spec"),
    writer("argocd-controller", "2026-01-02T00:00:00Z", "f:spec"),
    writer("nephila-operator", "2026-01-03T00:00:00Z", "f:metadata"),
    writer("nephila-operator", "2026-01-04T00:00:00Z", "f:status", "f:spec", subresource="status"),
]


@pytest.mark.parametrize(
    ("metadata", "by_annotation", "author"),
    [
        ({"annotations": {ANNOTATION: "anna@example.org"}}, True, "anna@example.org"),
        (
            {"annotations": {ANNOTATION: "anna@example.org"}, "managedFields": MANAGERS},
            False,
            "client argocd-controller",
        ),
        ({"annotations": {"other": "x"}, "managedFields": MANAGERS}, True, "client argocd-controller"),
        ({"annotations": {ANNOTATION: "a\nb\x1b[31m" + "c" * 400}}, True, "ab[31m" + "c" * 240),
        ({"managedFields": MANAGERS[2:]}, True, ""),
        ({}, True, ""),
    ],
)
def test_the_author_is_the_checked_annotation_or_else_the_client(
    metadata: dict[str, Any], by_annotation: bool, author: str
) -> None:
    assert author_of({"metadata": metadata}, by_annotation=by_annotation) == author


async def test_the_control_api_gets_the_author_with_the_job(running: Running) -> None:
    server, control = running.server, running.control
    server.apply("crawljobs", "news", JOB)
    server.annotate("crawljobs", "news", {ANNOTATION: "anna@example.org"})
    async with running.operator(author_annotation=True):
        await server.until(lambda: running.condition("crawljobs", "news") == ("True", "Applied"))
    assert control.authors == {"news": "anna@example.org"}
