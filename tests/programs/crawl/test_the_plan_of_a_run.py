"""`resolve` is a function of values: the request, and what was read before the run."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from nephila.kernel.documents.job_document import spec_of, urls_of
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.crawl import plan as plans
from nephila.programs.crawl.plan import COPIES, DUE, LINKS, MOVE, REMOVE, Plan
from nephila.programs.crawl.request import CrawlRequest, request_of
from nephila.programs.crawl.resolve import Earlier, Stored, draft_of, resolve
from nephila.programs.option_table import defaults
from nephila.programs.output_directory import RunFile
from nephila.programs.service_configs import make_configs

URL = "http://a.test/"
DOCUMENT: dict[str, Any] = {
    "apiVersion": "nephila.dev/v1",
    "kind": "CrawlJob",
    "metadata": {"name": "news"},
    "spec": {"seeds": [{"url": URL}], "scope": {"maxDepth": 3}},
}
OUT = Path("/nowhere/out")


def request(*urls: str, resume: bool = False, refresh: bool = False, **options: Any) -> CrawlRequest:
    modes = {"resume": resume, "refresh": refresh}
    return request_of(urls, OUT, {**defaults(), **options}, options.keys(), **modes)


def stored(crawl: CrawlRequest, run: RunFile | None = None, **facts: Any) -> Stored:
    """What was read before a run, with the settings that its draft has."""
    fields = {name: facts.pop(name) for name in Earlier.__struct_fields__ if name in facts}
    earlier = Earlier(run=run, now=1000.0, **{"has_log": run is not None, "writer": "crawl-1", **fields})
    draft = draft_of(crawl, earlier)
    configs = make_configs(
        draft.run.options, OUT, draft.formats, store=draft.store, recrawls=False, seeds=urls_of(draft.spec)
    )
    return Stored(earlier=earlier, configs=configs, **facts)


def plan_of(crawl: CrawlRequest, run: RunFile | None = None, **facts: Any) -> Plan:
    return resolve(crawl, stored(crawl, run, **facts))


def after(plan: Plan) -> RunFile:
    """run.json as a later program reads it."""
    file = replace(plan.run, state="stopped", refetch=[], incomplete=[])
    return msgspec.json.decode(msgspec.json.encode(file), type=RunFile)


def test_equal_inputs_give_equal_plans():
    crawl = request(URL, max_pages=7)
    assert plan_of(crawl) == plan_of(request(URL, max_pages=7))
    facts = stored(crawl)
    assert resolve(crawl, facts) == resolve(crawl, facts)


@pytest.mark.parametrize("document", [None, DOCUMENT], ids=["URL", "job"])
def test_nothing_of_the_inputs_changes(document):
    first = request(*([] if document else [URL]), max_pages=7, header=["Accept: text/html"])
    run = after(plan_of(first, document=document))
    for crawl, before in ((first, None), (request(refresh=True, links=True, max_depth=9), run)):
        facts = stored(crawl, before, document=document)
        copies = copy.deepcopy((crawl, facts))
        resolve(crawl, facts)
        assert (crawl, facts) == copies


def test_a_plan_cannot_be_changed():
    plan = plan_of(request(URL))
    for value, field in ((plan, "job"), (plan.run, "runs"), (plan.configs, "workers"), (request(URL), "resume")):
        with pytest.raises(AttributeError):
            setattr(value, field, getattr(value, field))


@pytest.mark.parametrize("document", [None, DOCUMENT], ids=["URL", "job"])
@pytest.mark.parametrize(
    "options", [{"max_pages": 7}, {"max_depth": 2, "delay": 0.0}, {"exclude": ["/x"], "user_agent": "b/2"}]
)
def test_options_on_a_resume_equal_options_at_once(options, document):
    """Job, settings and options are the same; the resume differs by its number and by what it fetches again."""
    urls = [] if document else [URL]
    at_once = plan_of(request(*urls, **options), document=document)
    run = after(plan_of(request(*urls), document=document))
    later = plan_of(request(resume=True, **options), run)
    assert (later.job, later.configs) == (at_once.job, at_once.configs)
    assert later.run.options == at_once.run.options
    again = plan_of(request(resume=True), after(later))
    assert (again.job, again.configs, again.run.options) == (later.job, later.configs, later.run.options)


def test_an_option_that_is_not_explicit_is_left_to_the_job_and_to_the_run_before():
    document = plan_of(request(), document=DOCUMENT)
    assert spec_of(document.job).scope.max_depth == 3
    run = after(plan_of(request(URL, max_depth=5)))
    assert spec_of(plan_of(request(resume=True, max_pages=9), run).job).scope.max_depth == 5


def test_resume_without_a_run_is_a_new_crawl():
    assert plan_of(request(URL, resume=True)) == plan_of(request(URL))
    with pytest.raises(UsageError, match="holds no crawl that could be resumed"):
        plan_of(request(URL, resume=True), leftovers=("frontier",))
    with pytest.raises(UsageError, match="nothing to crawl"):
        plan_of(request())


def test_lifted_limits_are_fetched_again_until_they_are_queued():
    run = after(plan_of(request(URL)))
    lifted = plan_of(request(resume=True, allow_private=True), run)
    assert lifted.run.refetch == [Reason.ADDRESS.ended]
    killed = replace(after(lifted), refetch=lifted.run.refetch)
    assert plan_of(request(resume=True), killed).run.refetch == lifted.run.refetch
    assert plan_of(request(resume=True), after(lifted)).run.refetch == []


def test_refused_links_are_fetched_only_if_they_are_stored():
    run = after(plan_of(request(URL, max_depth=1)))
    wider = request(resume=True, max_depth=5)
    assert LINKS in plan_of(wider, run, keeps_links=True).run.refetch
    assert LINKS not in plan_of(wider, run).run.refetch
    refreshed = plan_of(request(refresh=True, max_depth=5), run)
    assert refreshed.run.incomplete == ["links that were out of scope"]
    assert refreshed.run.refetch[0] == COPIES
    assert DUE in refreshed.run.refetch


def test_stored_pages_that_lack_an_output_are_named():
    run = after(plan_of(request(URL)))
    more = request(resume=True, links=True)
    plan = plan_of(more, run, copies=12)
    assert plan.run.incomplete == ["links"]
    assert plan.notice.startswith("12 pages were stored before these were added, and lack them: links;")
    assert (plan_of(more, run).notice, plan_of(more, run).run.incomplete) == ("", [])
    assert plan_of(request(resume=True), run, rule_versions={"r": 2}, copies=1).run.incomplete == ["rules"]


def test_secrets_are_in_the_settings_and_not_in_the_run():
    plan = plan_of(request(URL, header=["a.test X: secret"], user="me:pass"))
    assert "secret" not in str(plan.run.options)
    assert (plan.run.options["header"], plan.run.options["user"]) == (["a.test X:"], "me")
    assert any("secret" in line for line in plan.configs.downloader.http.headers)


def test_how_an_old_result_is_cleared():
    run = after(plan_of(request(URL)))
    fresh = replace(request(URL), fresh=True)
    assert [plan_of(request(URL)).clear, plan_of(request(resume=True), run).clear] == ["", ""]
    assert [plan_of(fresh, run).clear, plan_of(request(URL), run).clear] == [MOVE, REMOVE]
    assert plan_of(fresh, run).run == plan_of(request(URL)).run
    with pytest.raises(UsageError, match="holds an unfinished crawl of"):
        plan_of(request(URL), run, has_copies=True)
    with pytest.raises(UserError, match="in use by another nephila"):
        plan_of(request(URL), run, holder=7)
    with pytest.raises(UsageError, match="of an unknown crawl"):
        plan_of(request(URL), leftovers=("nephila.db",))
    with pytest.raises(UsageError, match="--fresh starts a new crawl"):
        plan_of(replace(fresh, resume=True), run)


def test_seeds_of_standard_input_need_the_log():
    begun = plan_of(request_of([], OUT, defaults(), {"seeds"}, seed_file="-"))
    assert not begun.has_seeds
    run = after(begun)
    assert plan_of(request(resume=True), run).has_seeds
    assert not plan_of(replace(request(resume=True), explicit=frozenset({"seeds"})), run).has_seeds
    with pytest.raises(UsageError, match="frontier is gone"):
        plan_of(request(resume=True), run, has_log=False)


def test_the_database_of_the_first_run_is_that_of_all():
    store = "postgresql://u:secret@h/db"
    plan = plan_of(replace(request(URL), store=store))
    assert (plan.run.store, plan.run.uid, plan.run.writer) == ("postgresql://u@h/db", "crawl-1", "crawl-1")
    assert (plan.job.uid, plan.rows) == ("crawl-1", store)
    by_variable = plan_of(request(URL), store=store)
    assert by_variable == plan
    resumed = plan_of(request(resume=True), after(plan), store=store, writer="crawl-2")
    assert (resumed.job.uid, resumed.run.writer, resumed.rows) == ("crawl-1", "crawl-1", store)
    with pytest.raises(UsageError, match=r"are in its nephila\.db"):
        plan_of(replace(request(resume=True), store=store), after(plan_of(request(URL))))


def test_recurring_keys_are_named_unless_the_run_refreshes():
    document = {**DOCUMENT, "spec": {**DOCUMENT["spec"], "paused": True}}
    plan = plan_of(request(), document=document)
    assert plan.ignored == ("paused",)
    assert not plan.job.paused
    refreshed = plan_of(request(refresh=True), after(plan))
    assert (refreshed.ignored, refreshed.refreshes, plan.refreshes) == ((), True, False)


def test_a_crawl_elsewhere_drops_the_times_of_recrawls():
    _, spec = plans.spec_of_run(RunFile(document={**DOCUMENT, "spec": {**DOCUMENT["spec"], "schedule": "0 6 * * *"}}))
    once, ignored = plans.without_recurring_keys(spec, keep_recrawl=False)
    assert (once.schedule, spec.schedule, ignored) == ("", "0 6 * * *", ("schedule",))
