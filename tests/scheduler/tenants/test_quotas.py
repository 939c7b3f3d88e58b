"""Quotas by account and period, and the table of tenants. Pure."""

from __future__ import annotations

import math

import pytest
from nephila.kernel.documents.field_types import instant_text
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.documents.job_schema import Quota, Recrawl
from nephila.kernel.messages import CrawlJob, QuotaUse
from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.tenants.quotas import Quotas, period
from nephila.scheduler.tenants.tenants import tenants

from tests.jobs import changed, crawl_job

DAY = 86_400.0
FEBRUARY = 1_709_164_800.0  # 2024-02-29 00:00 UTC


def job(uid: str, tenant: str = "", quota: Quota | None = None, site: str = "", site_quota: Quota | None = None):
    return crawl_job(uid, uid, 1, tenant=tenant, quota=quota, site=site, site_quota=site_quota)


def put(quotas: Quotas, job: CrawlJob) -> bool:
    return quotas.put(job.uid, spec_of(job))


def test_periods_are_days_and_months_of_utc():
    assert period("day", FEBRUARY + 5) == (FEBRUARY, FEBRUARY + DAY)
    assert period("month", FEBRUARY + 5) == (FEBRUARY - 28 * DAY, FEBRUARY + DAY)
    assert period("run", FEBRUARY, 7.0) == (7.0, math.inf)


def test_the_used_share_of_a_quota_is_that_of_its_scarcest_measure():
    """Of all jobs of the tenant and all partitions, in this period; a tenant without a quota has none."""
    quotas = Quotas(tenants(["news pages=10 bytes=1000", "free share=2"]), partitions=2)
    assert quotas.used_shares(FEBRUARY) == {"news": 0.0}
    for name in ("a", "b"):
        put(quotas, job(name, "news"))
        quotas.count(name, 100, 0.0, FEBRUARY)
    assert quotas.used_shares(FEBRUARY) == {"news": 0.2}
    quotas.set_elsewhere({"tenant:news": QuotaUse("tenant:news", FEBRUARY, pages=5, bytes=100)})
    assert quotas.used_shares(FEBRUARY) == {"news": 0.7}
    assert quotas.used_shares(FEBRUARY + DAY) == {"news": 0.0}


def test_a_job_without_a_quota_has_no_accounts():
    quotas = Quotas(tenants(["news share=2"]))
    assert not put(quotas, job("a", "news"))
    assert quotas.count("a", 10, 1.0, FEBRUARY) == []
    assert quotas.used_up("a", FEBRUARY) is None


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        (Quota(pages=3, per="day"), "3 pages per day"),
        (Quota(bytes=300, per="day"), "300 bytes per day"),
        (Quota(browser_seconds=4, per="day"), "4 browser-seconds per day"),
    ],
)
def test_each_measure_is_used_up_and_free_again_the_next_day(quota, words):
    quotas = Quotas({})
    assert put(quotas, job("a", quota=quota))
    for _ in range(2):
        quotas.count("a", 100, 1.5, FEBRUARY)
    assert quotas.used_up("a", FEBRUARY) is None
    quotas.count("a", 100, 1.5, FEBRUARY)
    found = quotas.used_up("a", FEBRUARY + 1)
    assert found == (f"the quota of the job a, {words}, is used up, until 2024-03-01T00:00:00Z", FEBRUARY + DAY)
    assert quotas.used_up("a", FEBRUARY + DAY) is None


def test_jobs_of_a_tenant_and_of_a_site_share_an_account():
    quotas = Quotas(tenants(["news pages=3 per=day"]))
    day = Quota(pages=5, per="day")
    for uid in ("a", "b"):
        put(quotas, job(uid, "news", site="s", site_quota=day))
    put(quotas, job("c", site="s", site_quota=day))
    for uid in ("a", "b", "a"):
        quotas.count(uid, 1, 0.0, FEBRUARY)
    assert "tenant news" in quotas.used_up("b", FEBRUARY).text
    assert quotas.used_up("c", FEBRUARY) is None
    for _ in range(2):
        quotas.count("c", 1, 0.0, FEBRUARY)
    assert "site s" in quotas.used_up("c", FEBRUARY).text


def test_a_run_is_over_with_the_next_refresh_and_with_the_job():
    quotas = Quotas({})
    spec = job("a", quota=Quota(pages=1))
    put(quotas, spec)
    quotas.count("a", 1, 0.0, FEBRUARY)
    assert quotas.used_up("a", FEBRUARY) == ("the quota of the job a, 1 pages per run, is used up", math.inf)
    spec = changed(spec, recrawl=Recrawl(refresh_at=instant_text(FEBRUARY)))
    put(quotas, spec)
    assert quotas.used_up("a", FEBRUARY) is None
    quotas.count("a", 1, 0.0, FEBRUARY)
    quotas.remove("a")
    put(quotas, spec)
    assert quotas.used_up("a", FEBRUARY) is None


@pytest.mark.parametrize(
    ("own", "of_site", "of_tenant", "longest"),
    [
        ("day", "month", "day", "site s"),
        ("month", "day", "day", "job a"),
        ("day", "day", "month", "tenant news"),
        ("run", "day", "month", "job a"),
        ("day", "day", "day", "job a"),
    ],
)
def test_of_several_quotas_that_are_used_up_the_longest_is_named(own, of_site, of_tenant, longest):
    """The job waits until its end; of equal ones the first counts."""
    quotas = Quotas(tenants([f"news pages=1 per={of_tenant}"]))
    day = FEBRUARY - 10 * DAY
    put(quotas, job("a", "news", Quota(pages=1, per=own), "s", Quota(pages=1, per=of_site)))
    quotas.count("a", 1, 0.0, day)
    found = quotas.used_up("a", day)
    assert found.text.startswith(f"the quota of the {longest}, 1 pages per ")
    ends = [period(per, day).end for per in (own, of_site, {"day": "day"}.get(of_tenant, "month"))]
    assert found.until == max(ends)


@pytest.mark.parametrize(
    ("quota", "partitions", "elsewhere", "room"),
    [
        (Quota(pages=10), 1, None, 8.0),
        (Quota(pages=10), 1, QuotaUse("job:a", 0.0, 5), 3.0),
        (Quota(bytes=1000), 1, None, 8.0),
        (Quota(browser_seconds=10), 1, None, 8.0),
        (Quota(pages=9, bytes=1000, browser_seconds=10), 1, None, 7.0),
        (Quota(pages=90, bytes=1000, browser_seconds=6), 1, None, 4.0),
        (Quota(pages=10), 4, None, 2.75),
        (Quota(pages=10), 4, QuotaUse("job:a", 0.0, 3, in_flight=1), 2.0),
        (Quota(pages=5), 4, QuotaUse("job:a", 0.0, 1), 2.0),
        (Quota(pages=4), 4, QuotaUse("job:a", 0.0, 1), 1.0),
        (Quota(pages=3), 4, QuotaUse("job:a", 0.0, 1), 1.0),
    ],
)
def test_the_room_of_a_frontier_is_its_share_of_what_is_left(quota, partitions, elsewhere, room):
    """Two fetches of 100 bytes and 1 s are counted. Of several frontiers each has one in flight, and its share comes on
    top: at least one fetch, until nothing is left."""
    quotas = Quotas({}, partitions)
    put(quotas, job("a", quota=quota))
    (found,) = quotas.rooms("a")
    for _ in range(2):
        quotas.count("a", 100, 1.0, FEBRUARY)
    if elsewhere is not None:
        quotas.set_elsewhere({"job:a": elsewhere})
    found.in_flight = 1 if partitions > 1 else 0
    quotas.renew("a", FEBRUARY)
    assert found.places == room
    assert [use.in_flight for use in quotas.uses("a", FEBRUARY)] == [found.in_flight]
    assert [use.in_flight for use in quotas.report()] == [found.in_flight]


def test_the_ends_of_periods_are_checked_at_the_first_of_them():
    """A changed quota is compared at once; after that the earliest end counts."""
    quotas = Quotas({})
    assert quotas.next_check == math.inf
    put(quotas, job("a", quota=Quota(pages=1)))
    assert quotas.next_check == -math.inf
    quotas.checked()
    quotas.check_at(20.0)
    quotas.check_at(10.0)
    quotas.check_at(30.0)
    assert quotas.next_check == 10.0


def test_tenants_have_their_share_and_others_one():
    quotas = Quotas(tenants(["news share=3", "other pages=1"]))
    assert quotas.tenants() == ["news", "other"]
    assert [quotas.share(name) for name in ("news", "other", "unknown")] == [3.0, 1.0, 1.0]


def test_the_browser_time_of_a_job_is_counted_without_a_quota():
    """It ends with the job."""
    quotas = Quotas({})
    assert quotas.browser_s("a") == 0.0
    quotas.count_browser("a", 1.5)
    assert quotas.count_browser("a", 2.0) == QuotaUse("browser:a", browser_s=3.5)
    assert quotas.browser_s("a") == 3.5
    quotas.remove("a")
    assert quotas.browser_s("a") == 0.0


def test_a_deleted_job_has_spent_the_quota_of_its_tenant():
    quotas = Quotas(tenants(["news pages=1"]))
    put(quotas, job("a", "news"))
    quotas.count("a", 1, 0.0, FEBRUARY)
    quotas.remove("a")
    put(quotas, job("b", "news"))
    assert quotas.used_up("b", FEBRUARY) is not None


def test_totals_are_restored_and_those_of_other_partitions_are_added():
    before, after = Quotas({}), Quotas({})
    for quotas in (before, after):
        put(quotas, job("a", quota=Quota(pages=4, per="day")))
    before.count("a", 1, 0.0, FEBRUARY)
    before.count("a", 1, 0.0, FEBRUARY)
    after.restore(before.dump())
    assert after.set_elsewhere({"job:a": QuotaUse("job:a", FEBRUARY, 1)})
    assert not after.set_elsewhere({"job:a": QuotaUse("job:a", FEBRUARY, 1)})
    assert after.used_up("a", FEBRUARY) is None
    after.set_elsewhere({"job:a": QuotaUse("job:a", FEBRUARY, 2)})
    assert after.used_up("a", FEBRUARY) is not None
    after.set_elsewhere({"job:a": QuotaUse("job:a", FEBRUARY - DAY, 2)})
    assert after.used_up("a", FEBRUARY) is None


def test_tenants_are_read():
    found = tenants(["news pages=1000 bytes=5 browserSeconds=2.5 per=month share=3", "other"])
    assert found["news"] == (Quota(pages=1000, bytes=5, browser_seconds=3, per="month"), 3.0, ())
    assert found["other"] == (Quota(per="day"), 1.0, ())


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("", "is no name"),
        ("news pages=-1", "pages must be a number from 0 on, not '-1'"),
        ("news pages=many", "pages must be a number from 0 on, not 'many'"),
        ("news bytes=nan", "bytes must be a number from 0 on"),
        ("news per=week", "per is day or month, not 'week'"),
        ("news page=1", "unknown setting 'page'; did you mean 'pages'?"),
        ("news share=0", "share must be above 0"),
    ],
)
def test_bad_tenants_are_one_line(entry, words):
    with pytest.raises(UsageError) as error:
        tenants([entry])
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_tenant_that_is_named_twice_is_an_error():
    with pytest.raises(UsageError, match="news is named twice"):
        tenants(["news", "news pages=1"])
