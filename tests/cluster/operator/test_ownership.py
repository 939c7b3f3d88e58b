"""Which of several releases has a resource, and the names of resources of other namespaces."""

from __future__ import annotations

from typing import Any

import pytest
from nephila_cluster.operator.ownership import LABEL, Ownership, Step

from tests.cluster.operator.test_operator import JOB, RULE, Running, running

__all__ = ["running"]
WEB = Ownership("web", home="crawl")


def resource(label: str = "", holder: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "news", "labels": {LABEL: label} if label else None}
    return {"metadata": metadata, "status": {"release": f"crawl/{holder}" if holder else ""}}


@pytest.mark.parametrize(
    ("label", "holder", "step", "labelled_only"),
    [
        ("", "", "claim", "ignore"),
        ("web", "", "claim", "claim"),
        ("other", "", "ignore", "ignore"),
        ("", "web", "serve", "leave"),
        ("web", "web", "serve", "serve"),
        ("other", "web", "leave", "leave"),
        ("", "other", "ignore", "ignore"),
        ("web", "other", "ignore", "ignore"),
    ],
)
def test_the_label_says_who_serves_and_the_status_who_has_it(
    label: str, holder: str, step: Step, labelled_only: Step
) -> None:
    assert WEB.step(resource(label, holder)) == step
    assert Ownership("web", unlabelled=False, home="crawl").step(resource(label, holder)) == labelled_only


def test_an_operator_without_a_release_claims_nothing_and_takes_nothing_from_others() -> None:
    assert Ownership().step(resource()) == "serve"
    assert Ownership().step(resource("", "web")) == "ignore"
    assert Ownership().step(resource("web")) == "ignore"


def test_resources_of_another_namespace_have_names_of_their_own_in_the_crawler() -> None:
    body = {"metadata": {"name": "news", "namespace": "team"}, "spec": {"rules": ["shop"]}}
    found = WEB.local(body)
    assert (found["metadata"]["name"], found["spec"]["rules"]) == ("team.news", ["team.shop"])
    assert body["metadata"]["name"] == "news"
    at_home = {**body, "metadata": {"name": "news", "namespace": "crawl"}}
    assert WEB.local(at_home) == at_home


async def test_two_releases_in_a_namespace_never_both_have_a_job(running: Running) -> None:
    """Both serve what has no label: the first one claims it, the second does not touch it."""
    server, control = running.server, running.control
    async with running.operator("a", release="web", lease="web"):
        server.apply("crawljobs", "news", JOB)
        await server.until(lambda: running.condition("crawljobs", "news") == ("True", "Applied"))
    async with running.operator("b", release="blog", lease="blog") as second:
        server.apply("crawljobs", "more", JOB)
        await server.until(lambda: running.condition("crawljobs", "more") == ("True", "Applied"))
        assert second.controller.counts()["CrawlJob"] == 1
    assert server.get("crawljobs", "news")["status"]["release"] == "crawl/web"
    assert server.get("crawljobs", "more")["status"]["release"] == "crawl/blog"
    assert control.requests == ["apply news", "apply more"]


async def test_a_job_whose_label_changes_is_deleted_by_one_release_before_the_other_has_it(running: Running) -> None:
    server, control = running.server, running.control
    server.apply("crawljobs", "news", JOB)
    async with running.operator("a", release="web", lease="web"):
        await server.until(lambda: running.condition("crawljobs", "news") == ("True", "Applied"))
        server.label("crawljobs", "news", {LABEL: "blog"})
        await server.until(lambda: server.get("crawljobs", "news")["status"]["release"] == "")
        assert control.requests == ["apply news", "delete news"]
    async with running.operator("b", release="blog", lease="blog", unlabelled=False):
        await server.until(lambda: server.get("crawljobs", "news")["status"]["release"] == "crawl/blog")
        await server.until(lambda: control.requests[-1] == "apply news")


async def test_jobs_of_a_further_namespace_are_served_under_names_of_their_own(running: Running) -> None:
    server, control = running.server, running.control
    async with running.operator(release="web", namespaces=("team",)):
        server.apply("parserules", "shop", RULE, namespace="team")
        await server.until(lambda: running.condition("parserules", "team/shop") == ("True", "Applied"))
        server.apply("crawljobs", "news", {**JOB, "rules": ["shop"]}, namespace="team")
        server.apply("crawljobs", "news", JOB)
        await server.until(lambda: running.condition("crawljobs", "team/news") == ("True", "Applied"))
        await server.until(lambda: running.condition("crawljobs", "news") == ("True", "Applied"))
        assert control.documents["team.news"]["spec"]["rules"] == ["team.shop"]
        server.delete("crawljobs", "team/news")
        await server.until(lambda: not server.get("crawljobs", "team/news"))
    assert sorted(control.jobs) == ["news"]


@pytest.mark.parametrize(("plural", "spec"), [("crawljobs", JOB), ("parserules", RULE)])
async def test_a_name_that_a_resource_of_another_namespace_may_have_is_refused(
    running: Running, plural: str, spec: dict[str, Any]
) -> None:
    """Two resources would have one job or rule; the deletion of one does not delete that of the other."""
    server, control = running.server, running.control
    async with running.operator(release="web", namespaces=("team",)):
        server.apply(plural, "news", spec, namespace="team")
        await server.until(lambda: running.condition(plural, "team/news") == ("True", "Applied"))
        before = list(control.requests)
        server.apply(plural, "team.news", spec)
        await server.until(lambda: running.condition(plural, "team.news", "Stalled") == ("True", "Invalid"))
        server.delete(plural, "team.news")
        await server.until(lambda: not server.get(plural, "team.news"))
        assert control.requests == before
