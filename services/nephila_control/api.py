"""The control API: its operations, each with its request, its answer and its HTTP route.

`Operations` (operations.py) implements the protocol once, for one program on this machine and for a system over Kafka;
`http/client.py` implements it for a server somewhere else, from the routes. Invariants: a request that cannot be done
changes nothing; the answer to a change comes when the change is durable (one program: in the frontier's log, synced;
Kafka: acks=all).

A method raises `UsageError` for a malformed request, `NotFound` for an unknown name, `UserError` for a request that the
present state refuses, `NotReadyError` while the system cannot be reached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from nephila.kernel.runtime.errors import UserError

from nephila_control import answers, audit_types, requests, screen_types, site_requests, studio_types, system_types

MAX_JOBS = 10_000
M = TypeVar("M", bound=Callable[..., Any])


class NotFound(UserError):
    """No job, rule, quarantine or dead letter has this name."""


class Forbidden(UserError):
    """The caller's role or tenants do not allow the operation."""


def over_http(method: str, path: str) -> Callable[[M], M]:
    """The route of an operation below /api/v1. A field of the request that the path names is part of the path; of a
    GET and a DELETE the others are query parameters, of a POST and a PATCH they are the JSON body."""

    def mark(operation: M) -> M:
        operation.http = (method, path)  # type: ignore[attr-defined]
        return operation

    return mark


class Control(Protocol):
    """The operations. Every implementation passes tests/contracts/test_control.py."""

    @over_http("POST", "/jobs")
    async def apply_job(self, request: requests.ApplyJob) -> answers.JobApplied:
        """Create or change a job."""

    @over_http("GET", "/jobs")
    async def list_jobs(self, request: requests.Empty) -> answers.JobList:
        """How all jobs stand."""

    @over_http("GET", "/directories")
    async def list_directories(self, request: requests.Empty) -> answers.DirectoryList:
        """The directories of sites, with the verdicts on their lists."""

    @over_http("POST", "/sites")
    async def apply_sites(self, request: site_requests.ApplySites) -> answers.SitesApplied:
        """Create or change sites; the runs of their directories follow the new settings."""

    @over_http("GET", "/sites")
    async def list_sites(self, request: requests.Empty) -> answers.SiteList:
        """The documents of all sites."""

    @over_http("GET", "/sites/{name}")
    async def get_site(self, request: site_requests.SiteName) -> answers.Site:
        """The document of one site."""

    @over_http("DELETE", "/sites/{name}")
    async def delete_site(self, request: site_requests.DeleteSite) -> answers.SiteChange:
        """Delete a site and its directories; rows stay."""

    @over_http("POST", "/sites/{site}/directories")
    async def apply_directory(self, request: site_requests.ApplyDirectory) -> answers.SiteChange:
        """Create or change one directory of a site."""

    @over_http("DELETE", "/sites/{site}/directories/{name}")
    async def delete_directory(self, request: site_requests.DeleteDirectory) -> answers.SiteChange:
        """Delete a directory of a site; rows stay."""

    @over_http("GET", "/jobs/{name}")
    async def get_job(self, request: requests.JobName) -> answers.JobDetail:
        """One job and its desired state."""

    @over_http("DELETE", "/jobs/{name}")
    async def delete_job(self, request: requests.JobName) -> answers.JobChanged:
        """Forget a job and its URLs; rows stay."""

    @over_http("POST", "/jobs/{name}/pause")
    async def pause_job(self, request: requests.JobName) -> answers.JobChanged:
        """Dispatch nothing more of a job; what is in flight still ends."""

    @over_http("POST", "/jobs/{name}/resume")
    async def resume_job(self, request: requests.JobName) -> answers.JobChanged:
        """Continue a paused job."""

    @over_http("POST", "/jobs/{name}/seeds")
    async def add_seeds(self, request: requests.AddSeeds) -> answers.SeedsAdded:
        """Queue seeds; a URL that is known already is not queued again."""

    @over_http("GET", "/jobs/{name}/quarantines")
    async def list_quarantines(self, request: requests.JobName) -> answers.QuarantineList:
        """Parts of hosts that a job no longer fetches from."""

    @over_http("POST", "/jobs/{name}/quarantines/release")
    async def release_quarantine(self, request: requests.ReleaseQuarantine) -> answers.QuarantineReleased:
        """Fetch from a quarantined part of a host again."""

    @over_http("POST", "/jobs/{name}/exclude/try")
    async def try_exclusion(self, request: requests.ExcludeUrls) -> answers.ExclusionTried:
        """Which queued URLs of a job an exclusion would remove; nothing is changed."""

    @over_http("POST", "/jobs/{name}/exclude")
    async def exclude(self, request: requests.ExcludeUrls) -> answers.JobApplied:
        """Add exclusions to a job; queued URLs that match are not fetched."""

    @over_http("POST", "/jobs/{name}/forget")
    async def forget(self, request: requests.ForgetUrls) -> answers.UrlsForgotten:
        """Forget URLs of a job: they are crawled again when they are found again."""

    @over_http("GET", "/explain")
    async def explain(self, request: requests.ExplainUrl) -> answers.Explained:
        """What became of a URL, and why."""

    @over_http("GET", "/pages")
    async def list_pages(self, request: screen_types.ListPages) -> screen_types.PageList:
        """URLs that have ended, the newest first."""

    @over_http("GET", "/search")
    async def search_pages(self, request: screen_types.SearchPages) -> screen_types.SearchResults:
        """Pages by words of title, URL and text, the best first."""

    @over_http("GET", "/page")
    async def get_page(self, request: screen_types.GetPage) -> screen_types.PageDetail:
        """One URL with text, links, items and fetches."""

    @over_http("GET", "/page/links-in")
    async def list_links_in(self, request: screen_types.GetPage) -> screen_types.LinksIn:
        """Links that lead to a URL, where links are stored."""

    @over_http("GET", "/page/screenshot")
    async def get_screenshot(self, request: screen_types.GetScreenshot) -> screen_types.Screenshot:
        """The screenshot of a rendered page, where they are kept."""

    @over_http("GET", "/page/body")
    async def get_body(self, request: screen_types.GetBody) -> screen_types.Body:
        """The body of a stored HTML page, as Markdown or as its source."""

    @over_http("GET", "/items")
    async def list_items(self, request: screen_types.ListItems) -> screen_types.ItemList:
        """Items that rules extracted."""

    @over_http("GET", "/audit")
    async def list_samples(self, request: requests.Empty) -> audit_types.SampleList:
        """Samples that people label, with the precision found so far."""

    @over_http("POST", "/audit")
    async def draw_sample(self, request: audit_types.DrawSample) -> audit_types.SampleOf:
        """Draw a sample of pages, items or links."""

    @over_http("GET", "/audit/{sample}")
    async def get_sample(self, request: audit_types.GetSample) -> audit_types.SampleDetail:
        """A sample, and one of its rows as it is judged."""

    @over_http("POST", "/audit/{sample}/labels")
    async def label_row(self, request: audit_types.LabelRow) -> audit_types.RowLabelled:
        """Store a verdict on a row of a sample."""

    @over_http("GET", "/audit-outcome")
    async def get_audit_outcome(self, request: audit_types.GetAuditOutcome) -> audit_types.AuditOutcomeOf:
        """Precision and recall by the labels, and expressions for the scope."""

    @over_http("POST", "/what-if")
    async def compare_frequencies(self, request: audit_types.CompareFrequencies) -> audit_types.FrequenciesCompared:
        """Replay the history of recrawls against other frequencies and budgets; nothing is changed."""

    @over_http("GET", "/outcomes")
    async def count_outcomes(self, request: screen_types.OfJob) -> screen_types.OutcomeCounts:
        """How fetches ended, by reason and over time."""

    @over_http("GET", "/series")
    async def get_series(self, request: screen_types.OfJob) -> screen_types.Series:
        """Queue and ends since the program started."""

    @over_http("GET", "/hosts")
    async def list_hosts(self, request: screen_types.ListHosts) -> screen_types.HostList:
        """Hosts, and why each waits."""

    @over_http("GET", "/rules")
    async def list_rules(self, request: requests.Empty) -> answers.RuleList:
        """The rules that pages are read by."""

    @over_http("POST", "/rules")
    async def apply_rules(self, request: requests.ApplyRules) -> answers.RulesApplied:
        """Create or change rules; pages are read by them from then on."""

    @over_http("DELETE", "/rules/{name}")
    async def delete_rule(self, request: requests.RuleName) -> answers.RuleChange:
        """Delete a rule; its items stay."""

    @over_http("GET", "/rule-health")
    async def rule_health(self, request: requests.Empty) -> answers.RuleHealthList:
        """Whether the rules still fit their sites."""

    @over_http("GET", "/studio/pages")
    async def list_studio_pages(self, request: studio_types.ListStudioPages) -> studio_types.StudioPages:
        """Pages that the rule studio can open."""

    @over_http("POST", "/studio/open")
    async def open_studio_page(self, request: studio_types.OpenStudioPage) -> studio_types.StudioDraft:
        """Begin a rule with a page."""

    @over_http("POST", "/studio/render")
    async def render_studio_page(self, request: studio_types.RenderStudioPage) -> studio_types.StudioDraft:
        """Fetch the page of a draft again by a browser that takes its steps."""

    @over_http("POST", "/studio/step")
    async def studio_step(self, request: studio_types.StudioStep) -> studio_types.StudioDraft:
        """Change a draft of a rule by an element of its page."""

    @over_http("POST", "/studio/view")
    async def studio_view(self, request: studio_types.OfDraft) -> studio_types.StudioView:
        """What a draft takes from the pages, and the selectors that are offered."""

    @over_http("POST", "/studio/frame")
    async def studio_frame(self, request: studio_types.StudioFrameOf) -> studio_types.StudioFrame:
        """The page of a draft as HTML without effect."""

    @over_http("POST", "/studio/rule")
    async def studio_rule(self, request: studio_types.OfDraft) -> studio_types.StudioRule:
        """The rule of a draft, its difference to the version in effect, and its tests."""

    @over_http("POST", "/studio/commit")
    async def studio_commit(self, request: studio_types.CommitRule) -> studio_types.RuleCommitted:
        """Commit the rule of a draft to the working copy of the rules."""

    @over_http("GET", "/changes")
    async def list_changes(self, request: requests.ListChanges) -> answers.ChangeList:
        """Pages that are new, changed, moved, gone or returned."""

    @over_http("GET", "/dead-letters")
    async def list_dead_letters(self, request: requests.ListDeadLetters) -> answers.DeadLetterList:
        """Messages that a service could not process."""

    @over_http("POST", "/dead-letters/replay")
    async def replay_dead_letters(self, request: requests.ReplayDeadLetters) -> answers.ReplayedList:
        """Publish messages of dead letters again."""

    @over_http("GET", "/members")
    async def list_members(self, request: requests.Empty) -> answers.MemberList:
        """The programs that take part."""

    @over_http("GET", "/status")
    async def status(self, request: requests.Empty) -> answers.Status:
        """The state of the program or system."""

    @over_http("GET", "/settings")
    async def get_settings(self, request: requests.Empty) -> answers.Settings:
        """The live settings."""

    @over_http("PATCH", "/settings")
    async def change_settings(self, request: requests.ChangeSettings) -> answers.Settings:
        """Change live settings; returns all of them."""

    @over_http("GET", "/configuration")
    async def get_configuration(self, request: system_types.ListConfiguration) -> system_types.Configuration:
        """The settings in effect, and where they come from."""

    @over_http("GET", "/network")
    async def get_network(self, request: requests.Empty) -> system_types.Network:
        """DNS and proxies of one program."""

    @over_http("GET", "/topics")
    async def list_topics(self, request: requests.Empty) -> system_types.TopicList:
        """Topics of a system over Kafka, and how far their readers are behind."""

    @over_http("GET", "/webhooks")
    async def list_webhooks(self, request: requests.Empty) -> system_types.WebhookList:
        """How far the webhooks are with the changes."""

    @over_http("GET", "/control-log")
    async def list_control_log(self, request: requests.ListControlLog) -> answers.ControlLog:
        """Who changed what over this API."""
