"""The control API: the declarations of its operations.

`Operations` (operations.py) answers them for one program on this machine and for a system over Kafka; `http/client.py`
asks a server somewhere else. Invariants: a request that cannot be done changes nothing; the answer to a change comes
when the change is durable (one program: in the frontier's log, synced; Kafka: acks=all).

A method raises `UsageError` for a malformed request, `NotFound` for an unknown name, `UserError` for a request that the
present state refuses, `NotReadyError` while the system cannot be reached.
"""

# mypy: disable-error-code="empty-body"
# The decorator gives each signature its body. It reads the types, so annotations are values, not texts (ADR 3).

from typing import Final

from nephila.kernel.runtime.errors import UserError

from nephila_control import (
    audit_types,
    capability_types,
    event_types,
    item_types,
    job_types,
    requests,
    rule_types,
    screen_types,
    site_types,
    studio_types,
    system_types,
)
from nephila_control.access import described
from nephila_control.access.roles import Role
from nephila_control.declaration import Operated, Operation, operation

MAX_JOBS = 10_000


class NotFound(UserError):
    """No job, rule, quarantine or dead letter has this name."""


class Forbidden(UserError):
    """The caller's role or tenants do not allow the operation."""


JOBS: Final = "nephila_control.jobs:JobOperations"
SITES: Final = "nephila_control.sites:SiteOperations"
SCREENS: Final = "nephila_control.screens:ScreenOperations"
AUDIT: Final = "nephila_control.audit:AuditOperations"
WHAT_IF: Final = "nephila_control.what_if:WhatIfOperations"
RULES: Final = "nephila_control.rules:RuleOperations"
PICTURES: Final = "nephila_control.item_pictures:ItemPictureOperations"
STUDIO: Final = "nephila_control.studio:StudioOperations"
SYSTEM: Final = "nephila_control.system:SystemOperations"


class Control(Operated):
    """The operations. Every implementation passes tests/contracts/test_control.py."""

    @operation("POST", "/jobs", Role.EDITOR, JOBS, tenants=True, log=described.APPLIED_JOB)
    async def apply_job(self, request: job_types.ApplyJob) -> job_types.JobApplied:
        """Create or change a job."""

    @operation("GET", "/jobs", Role.VIEWER, JOBS, tenants=True)
    async def list_jobs(self, request: job_types.ListJobs) -> job_types.JobList:
        """How all jobs stand, or those of one owner."""

    @operation("GET", "/directories", Role.VIEWER, SITES, tenants=True)
    async def list_directories(self, request: requests.Empty) -> site_types.DirectoryList:
        """The directories of sites, with the verdicts on their lists."""

    @operation("POST", "/sites", Role.EDITOR, SITES, tenants=True, log=described.SITES)
    async def apply_sites(self, request: site_types.ApplySites) -> site_types.SitesApplied:
        """Create or change sites; the runs of their directories follow the new settings."""

    @operation("POST", "/sites/preview", Role.EDITOR, SITES, tenants=True)
    async def preview_sites(self, request: site_types.ApplySites) -> site_types.SitesApplied:
        """What apply_sites would do with a request; nothing is changed."""

    @operation("GET", "/sites", Role.VIEWER, SITES, tenants=True)
    async def list_sites(self, request: requests.Empty) -> site_types.SiteList:
        """The documents of all sites."""

    @operation("GET", "/sites/{name}", Role.VIEWER, SITES, tenants=True)
    async def get_site(self, request: site_types.SiteName) -> site_types.Site:
        """The document of one site."""

    @operation("DELETE", "/sites/{name}", Role.EDITOR, SITES, tenants=True, log=described.SITE)
    async def delete_site(self, request: site_types.DeleteSite) -> site_types.SiteChange:
        """Delete a site and its directories; rows stay."""

    @operation("POST", "/sites/{site}/directories", Role.EDITOR, SITES, tenants=True, log=described.APPLIED_DIRECTORY)
    async def apply_directory(self, request: site_types.ApplyDirectory) -> site_types.SiteChange:
        """Create or change one directory of a site."""

    @operation("DELETE", "/sites/{site}/directories/{name}", Role.EDITOR, SITES, tenants=True, log=described.DIRECTORY)
    async def delete_directory(self, request: site_types.DeleteDirectory) -> site_types.SiteChange:
        """Delete a directory of a site; rows stay."""

    @operation("GET", "/jobs/{name}", Role.VIEWER, JOBS, tenants=True)
    async def get_job(self, request: job_types.JobName) -> job_types.JobDetail:
        """One job and its desired state."""

    @operation("DELETE", "/jobs/{name}", Role.EDITOR, JOBS, tenants=True, log=described.JOB)
    async def delete_job(self, request: job_types.JobName) -> job_types.JobChanged:
        """Forget a job and its URLs; rows stay."""

    @operation("POST", "/jobs/{name}/pause", Role.EDITOR, JOBS, tenants=True, log=described.JOB)
    async def pause_job(self, request: job_types.JobName) -> job_types.JobChanged:
        """Dispatch nothing more of a job; what is in flight still ends."""

    @operation("POST", "/jobs/{name}/resume", Role.EDITOR, JOBS, tenants=True, log=described.JOB)
    async def resume_job(self, request: job_types.JobName) -> job_types.JobChanged:
        """Continue a paused job."""

    @operation("POST", "/jobs/{name}/seeds", Role.EDITOR, JOBS, tenants=True, log=described.SEEDS)
    async def add_seeds(self, request: job_types.AddSeeds) -> job_types.SeedsAdded:
        """Queue seeds; a URL that is known already is not queued again."""

    @operation("GET", "/jobs/{name}/quarantines", Role.VIEWER, JOBS, tenants=True)
    async def list_quarantines(self, request: job_types.JobName) -> job_types.QuarantineList:
        """Parts of hosts that a job no longer fetches from."""

    @operation("POST", "/jobs/{name}/quarantines/release", Role.EDITOR, JOBS, tenants=True, log=described.QUARANTINE)
    async def release_quarantine(self, request: job_types.ReleaseQuarantine) -> job_types.QuarantineReleased:
        """Fetch from a quarantined part of a host again."""

    @operation("POST", "/jobs/{name}/exclude/try", Role.VIEWER, JOBS, tenants=True)
    async def try_exclusion(self, request: job_types.ExcludeUrls) -> job_types.ExclusionTried:
        """Which queued URLs of a job an exclusion would remove; nothing is changed."""

    @operation("POST", "/jobs/{name}/exclude", Role.EDITOR, JOBS, tenants=True, log=described.JOB)
    async def exclude(self, request: job_types.ExcludeUrls) -> job_types.JobApplied:
        """Add exclusions to a job; queued URLs that match are not fetched."""

    @operation("POST", "/jobs/{name}/forget", Role.EDITOR, JOBS, tenants=True, log=described.FORGOTTEN)
    async def forget(self, request: job_types.ForgetUrls) -> job_types.UrlsForgotten:
        """Forget URLs of a job: they are crawled again when they are found again."""

    @operation("GET", "/explain", Role.VIEWER, JOBS, tenants=True)
    async def explain(self, request: job_types.ExplainUrl) -> job_types.Explained:
        """What became of a URL, and why."""

    @operation("GET", "/pages", Role.VIEWER, SCREENS, tenants=True)
    async def list_pages(self, request: screen_types.ListPages) -> screen_types.PageList:
        """URLs that have ended, the newest first."""

    @operation("GET", "/search", Role.VIEWER, SCREENS, tenants=True)
    async def search_pages(self, request: screen_types.SearchPages) -> screen_types.SearchResults:
        """Pages by words of title, URL and text, the best first."""

    @operation("GET", "/page", Role.VIEWER, SCREENS, tenants=True)
    async def get_page(self, request: screen_types.GetPage) -> screen_types.PageDetail:
        """One URL with text, links, items and fetches."""

    @operation("GET", "/page/links-in", Role.VIEWER, SCREENS, tenants=True)
    async def list_links_in(self, request: screen_types.GetPage) -> screen_types.LinksIn:
        """Links that lead to a URL, where links are stored."""

    @operation("GET", "/page/screenshot", Role.VIEWER, SCREENS, tenants=True)
    async def get_screenshot(self, request: screen_types.GetScreenshot) -> screen_types.Screenshot:
        """The screenshot of a rendered page, where they are kept."""

    @operation("GET", "/page/body", Role.VIEWER, STUDIO)
    async def get_body(self, request: screen_types.GetBody) -> screen_types.Body:
        """The body of a stored HTML page, as Markdown or as its source."""

    @operation("GET", "/items", Role.VIEWER, SCREENS, tenants=True)
    async def list_items(self, request: screen_types.ListItems) -> screen_types.ItemList:
        """Items that rules extracted."""

    @operation("GET", "/items/profile", Role.VIEWER, SCREENS, tenants=True)
    async def profile_items(self, request: screen_types.ListItems) -> item_types.ItemProfile:
        """How many items fit, and what their fields hold."""

    @operation("GET", "/items/picture", Role.EDITOR, PICTURES)
    async def get_item_picture(self, request: item_types.GetItemPicture) -> studio_types.StudioFile:
        """A picture that an item names, fetched now or a short time ago."""

    @operation("GET", "/audit", Role.VIEWER, AUDIT)
    async def list_samples(self, request: requests.Empty) -> audit_types.SampleList:
        """Samples that people label, with the precision found so far."""

    @operation("POST", "/audit", Role.EDITOR, AUDIT, log=described.SAMPLE)
    async def draw_sample(self, request: audit_types.DrawSample) -> audit_types.SampleOf:
        """Draw a sample of pages, items or links."""

    @operation("GET", "/audit/{sample}", Role.VIEWER, AUDIT)
    async def get_sample(self, request: audit_types.GetSample) -> audit_types.SampleDetail:
        """A sample, and one of its rows as it is judged."""

    @operation("POST", "/audit/{sample}/labels", Role.EDITOR, AUDIT, log=described.LABEL)
    async def label_row(self, request: audit_types.LabelRow) -> audit_types.RowLabelled:
        """Store a verdict on a row of a sample."""

    @operation("GET", "/audit-outcome", Role.VIEWER, AUDIT)
    async def get_audit_outcome(self, request: audit_types.GetAuditOutcome) -> audit_types.AuditOutcomeOf:
        """Precision and recall by the labels, and expressions for the scope."""

    @operation("POST", "/what-if", Role.VIEWER, WHAT_IF)
    async def compare_frequencies(self, request: audit_types.CompareFrequencies) -> audit_types.FrequenciesCompared:
        """Replay the history of recrawls against other frequencies and budgets; nothing is changed."""

    @operation("GET", "/outcomes", Role.VIEWER, SCREENS, tenants=True)
    async def count_outcomes(self, request: screen_types.OfJob) -> screen_types.OutcomeCounts:
        """How fetches ended, by reason and over time."""

    @operation("GET", "/series", Role.VIEWER, SCREENS, tenants=True)
    async def get_series(self, request: screen_types.GetSeries) -> screen_types.Series:
        """Queue and ends since the program started, or in the last minutes, hours or days."""

    @operation("GET", "/hosts", Role.VIEWER, SCREENS, tenants=True)
    async def list_hosts(self, request: screen_types.ListHosts) -> screen_types.HostList:
        """Hosts, and why each waits."""

    @operation("POST", "/hosts/{name}/pace", Role.EDITOR, SCREENS, log=described.HOST)
    async def change_host(self, request: screen_types.ChangeHost) -> screen_types.HostChanged:
        """Fetch from a host again now, pause it, or leave more time between its requests; for all jobs."""

    @operation("GET", "/rules", Role.VIEWER, RULES, tenants=True)
    async def list_rules(self, request: requests.Empty) -> rule_types.RuleList:
        """The rules that pages are read by."""

    @operation("POST", "/rules", Role.EDITOR, RULES, tenants=True, log=described.RULES)
    async def apply_rules(self, request: rule_types.ApplyRules) -> rule_types.RulesApplied:
        """Create or change rules; pages are read by them from then on."""

    @operation("DELETE", "/rules/{name}", Role.EDITOR, RULES, tenants=True, log=described.RULE)
    async def delete_rule(self, request: rule_types.RuleName) -> rule_types.RuleChange:
        """Delete a rule; its items stay."""

    @operation("GET", "/rules/{name}/versions", Role.VIEWER, RULES, tenants=True)
    async def list_rule_versions(self, request: rule_types.RuleName) -> rule_types.RuleVersionList:
        """The last versions of a rule, and how each differs from the one in effect."""

    @operation("GET", "/rule-health", Role.VIEWER, RULES, tenants=True)
    async def rule_health(self, request: requests.Empty) -> rule_types.RuleHealthList:
        """Whether the rules still fit their sites."""

    @operation("GET", "/studio/pages", Role.EDITOR, STUDIO)
    async def list_studio_pages(self, request: studio_types.ListStudioPages) -> studio_types.StudioPages:
        """Pages that the rule studio can open."""

    @operation("POST", "/studio/open", Role.EDITOR, STUDIO)
    async def open_studio_page(self, request: studio_types.OpenStudioPage) -> studio_types.StudioDraft:
        """Begin a rule with a page."""

    @operation("POST", "/studio/render", Role.EDITOR, STUDIO)
    async def render_studio_page(self, request: studio_types.RenderStudioPage) -> studio_types.StudioDraft:
        """Fetch the page of a draft again by a browser that takes its steps."""

    @operation("POST", "/studio/step", Role.EDITOR, STUDIO)
    async def studio_step(self, request: studio_types.StudioStep) -> studio_types.StudioDraft:
        """Change a draft of a rule by an element of its page."""

    @operation("POST", "/studio/view", Role.EDITOR, STUDIO)
    async def studio_view(self, request: studio_types.OfDraft) -> studio_types.StudioView:
        """What a draft takes from the pages, and the selectors that are offered."""

    @operation("POST", "/studio/frame", Role.EDITOR, STUDIO)
    async def studio_frame(self, request: studio_types.StudioFrameOf) -> studio_types.StudioFrame:
        """The page of a draft as HTML without effect."""

    @operation("GET", "/studio/file", Role.EDITOR, STUDIO)
    async def studio_file(self, request: studio_types.GetStudioFile) -> studio_types.StudioFile:
        """A style sheet, picture or font of a shown page, fetched now or a short time ago."""

    @operation("POST", "/studio/rule", Role.EDITOR, STUDIO)
    async def studio_rule(self, request: studio_types.OfDraft) -> studio_types.StudioRule:
        """The rule of a draft, its difference to the version in effect, and its tests."""

    @operation("POST", "/studio/extract", Role.EDITOR, STUDIO, log=described.EXTRACTION)
    async def extract_stored(self, request: studio_types.ExtractStored) -> studio_types.StoredExtraction:
        """Run the rule of a draft on the stored pages and write the items."""

    @operation("POST", "/studio/commit", Role.EDITOR, STUDIO, log=described.COMMIT)
    async def studio_commit(self, request: studio_types.CommitRule) -> studio_types.RuleCommitted:
        """Commit the rule of a draft to the working copy of the rules."""

    @operation("GET", "/changes", Role.VIEWER, SYSTEM, tenants=True)
    async def list_changes(self, request: system_types.ListChanges) -> system_types.ChangeList:
        """Pages that are new, changed, moved, gone or returned."""

    @operation("GET", "/dead-letters", Role.VIEWER, SYSTEM)
    async def list_dead_letters(self, request: system_types.ListDeadLetters) -> system_types.DeadLetterList:
        """Messages that a service could not process."""

    @operation("POST", "/dead-letters/replay", Role.EDITOR, SYSTEM, log=described.DEAD_LETTERS)
    async def replay_dead_letters(self, request: system_types.ReplayDeadLetters) -> system_types.ReplayedList:
        """Publish messages of dead letters again."""

    @operation("GET", "/members", Role.VIEWER, SYSTEM)
    async def list_members(self, request: requests.Empty) -> system_types.MemberList:
        """The programs that take part."""

    @operation("GET", "/capabilities", Role.VIEWER, STUDIO, tenants=True)
    async def get_capabilities(self, request: requests.Empty) -> capability_types.Capabilities:
        """What works in this program, and what does not: with the reason and the remedy."""

    @operation("GET", "/status", Role.VIEWER, SYSTEM, tenants=True)
    async def status(self, request: requests.Empty) -> system_types.Status:
        """The state of the program or system."""

    @operation("GET", "/events", Role.VIEWER, SYSTEM)
    async def list_events(self, request: event_types.ListEvents) -> event_types.EventList:
        """What happened: members that came and went, takeovers, jobs that failed, a store that was away."""

    @operation("GET", "/settings", Role.VIEWER, SYSTEM)
    async def get_settings(self, request: requests.Empty) -> system_types.Settings:
        """The live settings."""

    @operation("PATCH", "/settings", Role.ADMIN, SYSTEM, log=described.SETTINGS)
    async def change_settings(self, request: system_types.ChangeSettings) -> system_types.Settings:
        """Change live settings; returns all of them."""

    @operation("GET", "/configuration", Role.ADMIN, SYSTEM)
    async def get_configuration(self, request: system_types.ListConfiguration) -> system_types.Configuration:
        """The settings in effect, and where they come from."""

    @operation("GET", "/network", Role.VIEWER, SYSTEM)
    async def get_network(self, request: requests.Empty) -> system_types.Network:
        """DNS and proxies of one program."""

    @operation("GET", "/topics", Role.VIEWER, SYSTEM)
    async def list_topics(self, request: requests.Empty) -> system_types.TopicList:
        """Topics of a system over Kafka, and how far their readers are behind."""

    @operation("GET", "/webhooks", Role.VIEWER, SYSTEM)
    async def list_webhooks(self, request: requests.Empty) -> system_types.WebhookList:
        """How far the webhooks are with the changes."""

    @operation("GET", "/control-log", Role.ADMIN, SYSTEM)
    async def list_control_log(self, request: system_types.ListControlLog) -> system_types.ControlLog:
        """Who changed what over this API."""


OPERATIONS: Final[dict[str, Operation]] = {
    name: member.declared for name, member in vars(Control).items() if hasattr(member, "declared")
}
"""Every operation by its name, in the order of the OpenAPI document."""
