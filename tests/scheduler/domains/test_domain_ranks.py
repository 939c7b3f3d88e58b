"""The order of domains by ranks: levels of doubling size, hosts under their domain."""

from __future__ import annotations

import random

from nephila.kernel.documents.budget_schema import MOST_RANKS
from nephila.kernel.net.public_suffix import domain_of
from nephila.scheduler.domains.domain_ranks import LAST_LEVEL, DomainRanks, ranks_of


def test_a_level_has_twice_as_many_domains_as_the_level_before():
    names = [f"d{number}.test" for number in range(1, 40)]
    ranks = DomainRanks(names)
    levels = [ranks.level(name) for name in names]
    assert levels == sorted(levels)
    assert [levels.count(level) for level in range(6)] == [1, 2, 4, 8, 16, 8]


def test_a_domain_without_a_rank_is_behind_the_last_possible_rank():
    ranks = DomainRanks([f"d{number}.test" for number in range(MOST_RANKS)])
    assert ranks.level(f"d{MOST_RANKS - 1}.test") < ranks.level("other.test") == LAST_LEVEL
    assert ranks.rank("other.test") == 0


def test_hosts_have_the_rank_of_their_domain():
    """With ports, below the domain, and where the list itself names a host; the first of two names counts."""
    ranks = DomainRanks(["a.co.uk", "www.b.test", "x.b.test", "127.0.0.1"])
    hosts = ["a.co.uk", "x.y.a.co.uk:8080", "b.test", "z.b.test", "127.0.0.1:80", "co.uk", "b.co.uk"]
    assert list(map(ranks.rank, hosts)) == [1, 1, 2, 2, 4, 0, 0]


def test_ranks_equal_a_search_in_the_list():
    draw = random.Random(5)
    pool = [f"h{number}.d{number % 70}.{end}" for number in range(200) for end in ("com", "co.uk")]
    for _ in range(20):
        names = draw.sample(pool, draw.randrange(1, 100))
        ranks, domains = DomainRanks(names), list(map(domain_of, names))
        for host in pool:
            domain = domain_of(host)
            assert ranks.rank(host) == (domains.index(domain) + 1 if domain in domains else 0)


def test_partitions_of_one_program_share_the_ranks_of_a_document():
    assert ranks_of(("a.test", "b.test")) is ranks_of(("a.test", "b.test"))
