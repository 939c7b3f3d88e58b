"""Registrable domains as publicsuffix.org tests them, by the list alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from nephila.kernel.net.public_suffix import domain_of, is_public_suffix, registrable_domain, site_of


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("b.example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("a.b.c.mm", "b.c.mm"),  # *.mm
        ("www.ck", "www.ck"),  # !www.ck
        ("www.www.ck", "www.ck"),
        ("a.city.kobe.jp", "city.kobe.jp"),  # !city.kobe.jp below *.kobe.jp
        ("a.b.c.kobe.jp", "b.c.kobe.jp"),
        ("blog.someone.github.io", "someone.github.io"),  # a private suffix
        ("x.ex.futurecms.at", "x.ex.futurecms.at"),  # *.ex.futurecms.at, beside *.futurecms.at
        ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),  # 公司.cn
        ("www.xn--85x722f.xn--fiqs8s", "xn--85x722f.xn--fiqs8s"),  # 中国
    ],
)
def test_a_domain_has_one_label_more_than_its_suffix(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain
    assert registrable_domain(f"{host}:8080").removesuffix(":8080") == domain
    assert site_of(host) == domain_of(f"{host}:8080") == domain


@pytest.mark.parametrize("name", ["com", "co.uk", "c.mm", "github.io", "xn--55qx5d.cn", "intranet"])
def test_anyone_can_register_below_a_public_suffix(name: str) -> None:
    assert is_public_suffix(name)
    assert registrable_domain(name) == name
    assert not is_public_suffix(f"example.{name}")


def test_a_wildcard_holds_beside_a_longer_one() -> None:
    assert is_public_suffix("ex.futurecms.at")  # *.futurecms.at
    assert is_public_suffix("x.ex.futurecms.at")  # *.ex.futurecms.at
    assert not is_public_suffix("futurecms.at")


def test_hosts_without_a_suffix_are_domains_and_their_sites_have_two_labels() -> None:
    for host in ("127.0.0.1", "[::1]", "[::1]:80", "10.0.0.1:80", "localhost", "a.b.internal"):
        assert registrable_domain(host) == host
    assert site_of("a.b.internal") == "b.internal"
    assert site_of("10.0.0.1") == "10.0.0.1"
    assert domain_of("10.0.0.1:8080") == "10.0.0.1"


def test_the_list_is_read_without_its_library() -> None:
    code = "import sys; from nephila.kernel.net import public_suffix as p; p.domain_of('a.example.co.uk')"
    names = subprocess.run(
        [sys.executable, "-c", f"{code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"tldextract", "requests", "urllib3"} & set(names)
