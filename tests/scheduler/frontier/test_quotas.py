"""Quotas by account and period, and the table of tenants. Pure."""

from __future__ import annotations

import math

import pytest
from nephila.kernel.messages import CrawlJob, Quota, QuotaPeriod, QuotaUse, Recrawl
from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.frontier.quotas import Quotas, period
from nephila.scheduler.frontier.tenants import tenants

DAY = 86_400.0
FEBRUARY = 1_709_164_800.0  # 2024-02-29 00:00 UTC


def job(uid: str, tenant: str = "", quota: Quota | None = None, site: str = "", site_quota: Quota | None = None):
    return CrawlJob(uid, uid, 1, tenant=tenant, quota=quota, site=site, site_quota=site_quota)


def test_periods_are_days_and_months_of_utc():
    assert period(QuotaPeriod.DAY, FEBRUARY + 5) == (FEBRUARY, FEBRUARY + DAY)
    assert period(QuotaPeriod.MONTH, FEBRUARY + 5) == (FEBRUARY - 28 * DAY, FEBRUARY + DAY)
    assert period(QuotaPeriod.RUN, FEBRUARY, 7.0) == (7.0, math.inf)


def test_a_job_without_a_quota_has_no_accounts():
    quotas = Quotas(tenants(["news share=2"]))
    assert not quotas.put(job("a", "news"))
    assert quotas.count("a", 10, 1.0, FEBRUARY) == []
    assert quotas.used_up("a", FEBRUARY) is None


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        (Quota(3, 0, 0.0, QuotaPeriod.DAY), "3 pages per day"),
        (Quota(0, 300, 0.0, QuotaPeriod.DAY), "300 bytes per day"),
        (Quota(0, 0, 4.5, QuotaPeriod.DAY), "4.5 browser-seconds per day"),
    ],
)
def test_each_measure_is_used_up_and_free_again_the_next_day(quota, words):
    quotas = Quotas({})
    assert quotas.put(job("a", quota=quota))
    for _ in range(2):
        quotas.count("a", 100, 1.5, FEBRUARY)
    assert quotas.used_up("a", FEBRUARY) is None
    quotas.count("a", 100, 1.5, FEBRUARY)
    found = quotas.used_up("a", FEBRUARY + 1)
    assert found == (f"the quota of the job a, {words}, is used up, until 2024-03-01T00:00:00Z", FEBRUARY + DAY)
    assert quotas.used_up("a", FEBRUARY + DAY) is None


def test_jobs_of_a_tenant_and_of_a_site_share_an_account():
    quotas = Quotas(tenants(["news pages=3 per=day"]))
    day = Quota(5, per=QuotaPeriod.DAY)
    for uid in ("a", "b"):
        quotas.put(job(uid, "news", site="s", site_quota=day))
    quotas.put(job("c", site="s", site_quota=day))
    for uid in ("a", "b", "a"):
        quotas.count(uid, 1, 0.0, FEBRUARY)
    assert "tenant news" in quotas.used_up("b", FEBRUARY).text
    assert quotas.used_up("c", FEBRUARY) is None
    for _ in range(2):
        quotas.count("c", 1, 0.0, FEBRUARY)
    assert "site s" in quotas.used_up("c", FEBRUARY).text


def test_a_run_is_over_with_the_next_refresh_and_with_the_job():
    quotas = Quotas({})
    spec = job("a", quota=Quota(1))
    quotas.put(spec)
    quotas.count("a", 1, 0.0, FEBRUARY)
    assert quotas.used_up("a", FEBRUARY) == ("the quota of the job a, 1 pages per run, is used up", math.inf)
    spec.recrawl = Recrawl(refresh_at=FEBRUARY)
    quotas.put(spec)
    assert quotas.used_up("a", FEBRUARY) is None
    quotas.count("a", 1, 0.0, FEBRUARY)
    quotas.remove("a")
    quotas.put(spec)
    assert quotas.used_up("a", FEBRUARY) is None


def test_a_deleted_job_has_spent_the_quota_of_its_tenant():
    quotas = Quotas(tenants(["news pages=1"]))
    quotas.put(job("a", "news"))
    quotas.count("a", 1, 0.0, FEBRUARY)
    quotas.remove("a")
    quotas.put(job("b", "news"))
    assert quotas.used_up("b", FEBRUARY) is not None


def test_totals_are_restored_and_those_of_other_partitions_are_added():
    before, after = Quotas({}), Quotas({})
    for quotas in (before, after):
        quotas.put(job("a", quota=Quota(4, per=QuotaPeriod.DAY)))
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
    assert found["news"] == (Quota(1000, 5, 2.5, QuotaPeriod.MONTH), 3.0)
    assert found["other"] == (Quota(per=QuotaPeriod.DAY), 1.0)


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
