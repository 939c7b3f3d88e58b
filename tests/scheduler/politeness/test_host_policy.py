"""What a job asks of a host: its delay, that of the first policy that matches, Crawl-delay, what a fetch took."""

from __future__ import annotations

import random

import pytest
from nephila.kernel.documents.field_types import duration_text, seconds
from nephila.kernel.documents.job_schema import Host, Politeness
from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.politeness.host_policy import HostPolicies


def compiled(*hosts: Host, delay_s: float = 1.0, **fields: object) -> HostPolicies:
    """The policies of a job."""
    return HostPolicies(Politeness(delay=duration_text(delay_s), hosts=list(hosts), **fields))  # type: ignore[arg-type]


def test_the_longest_delay_counts() -> None:
    """Configured or Crawl-delay, whichever is longer; Crawl-delay is not asked where robots are ignored."""
    job = compiled()
    assert job.delay_s("a.test") == 1.0
    assert job.delay_s("a.test", crawl_delay_s=5.0) == 5.0
    assert job.delay_s("a.test", crawl_delay_s=0.5) == 1.0
    assert compiled(respect_robots=False).delay_s("a.test", crawl_delay_s=5.0) == 1.0


@pytest.mark.parametrize(
    ("took_s", "delay_s"), [(0.0, 1.0), (0.1, 1.0), (0.5, 2.5), (2.0, 10.0), (6.0, 30.0), (90.0, 30.0)]
)
def test_a_slow_host_is_asked_less_often(took_s: float, delay_s: float) -> None:
    """Five times the last fetch, within 1-30 s, where the job is adaptive; nothing of it where it is not."""
    assert compiled(delay_s=0.0, adaptive=True).delay_s("a.test", 0.0, took_s) == delay_s
    assert compiled(delay_s=40.0, adaptive=True).delay_s("a.test", 0.0, took_s) == 40.0
    assert compiled(delay_s=0.0).delay_s("a.test", 0.0, took_s) == 0.0


def test_the_first_policy_that_matches_counts() -> None:
    """In the order of the job, not by length; a name does not match the pattern of what is below it."""
    job = compiled(
        Host("slow.example.org", delay="9s", concurrency=2),
        Host("*.example.org", delay="0"),
        Host("*.deep.example.org", delay="7s"),
        Host("example.org", concurrency=3),
        Host("slow.example.org", delay="4s"),
        concurrency_per_host=5,
    )
    found = {
        name: (job.delay_s(name), job.concurrency(name))
        for name in ("slow.example.org", "x.example.org", "x.deep.example.org", "example.org", "notexample.org")
    }
    assert found == {
        "slow.example.org": (9.0, 2),
        "x.example.org": (0.0, 5),
        "x.deep.example.org": (0.0, 5),
        "example.org": (1.0, 3),
        "notexample.org": (1.0, 5),
    }


def test_ports_and_spellings() -> None:
    """A pattern below a name holds for every port unless it names one; a host key is one spelling of a host."""
    job = compiled(
        Host("*.a.test:8080", delay="8s"),
        Host("*.a.test", delay="2s"),
        Host("Bücher.Test", delay="3s"),
        Host("[::1]:81", delay="4s"),
    )
    assert job.delay_s("x.a.test:8080") == 8.0
    assert job.delay_s("x.a.test:81") == 2.0
    assert job.delay_s("x.a.test") == 2.0
    assert job.delay_s("xn--bcher-kva.test") == 3.0
    assert job.delay_s("xn--bcher-kva.test:81") == 1.0
    assert job.delay_s("[::1]:81") == 4.0


def test_same_as_reading_the_policies_in_order() -> None:
    """The compiled form finds what a walk over the list finds."""
    rng = random.Random(2)
    names = [".".join(rng.choices("abc", k=rng.randint(1, 4))) for _ in range(200)]
    policies = [
        Host(rng.choice(("", "*.")) + name, delay=duration_text(float(number)))
        for number, name in enumerate(names[:60])
    ]
    job = compiled(*policies, delay_s=99.0)

    def matches(pattern: str, host: str) -> bool:
        return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern

    for host in names:
        expected = next((seconds(policy.delay) for policy in policies if matches(policy.host, host)), 99.0)
        assert job.delay_s(host) == expected


def test_who_is_paced_by_address() -> None:
    """Every job but one with delay 0."""
    assert compiled(delay_s=0.1).paced_by_address
    assert not compiled(delay_s=0.0).paced_by_address


def test_at_least_one_fetch_at_once() -> None:
    """0 means 1."""
    assert compiled().concurrency("a.test") == 1


@pytest.mark.parametrize(
    "host", ["", "*.", "*", "a*.test", "http://a.test/", "a.test/x", "u@a.test", "a b", "a.test:x"]
)
def test_a_pattern_without_sense_is_one_line(host: str) -> None:
    """It is quoted, so that it can be found."""
    with pytest.raises(UsageError, match="politeness of") as error:
        compiled(Host(host, delay="1s"))
    assert repr(host) in str(error.value)
    assert "\n" not in str(error.value)
