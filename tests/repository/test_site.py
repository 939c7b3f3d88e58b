"""The documentation site: no link leads nowhere, no page is left out."""

from __future__ import annotations

import json

import pytest

from tools import site


@pytest.fixture(scope="module")
def assembled() -> site.Site:
    return site.assemble()


def test_no_link_of_a_page_leads_nowhere(assembled):
    assert assembled.broken == []


def test_each_page_of_docs_is_in_the_site(assembled):
    """A page that is not in the table would be found by search alone."""
    wanted = {site.place_of(one) for one in site.tracked() if one.startswith("docs/") and one.endswith(".md")}
    assert wanted - set(assembled.pages) == set()


def test_links_are_those_of_the_site(assembled):
    assert "](outputs.md)" in assembled.pages["walkthrough.md"]
    assert "](contributing.md)" in assembled.pages["walkthrough.md"]
    assert (
        "](../code/scheduler.md)" in assembled.pages["architecture.md"]
        or "](code/scheduler.md)" in assembled.pages["architecture.md"]
    )
    assert "services/nephila/kernel/topics.py)" not in assembled.pages["architecture.md"]


def test_a_wrong_link_is_named_with_its_file(monkeypatch, tmp_path):
    """Code is left alone."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n[b](b.md) [a](a.md#x) `[n](file)`\n```\n[c](c.md)\n```\n[s](../s.py)")
    (tmp_path / "s.py").write_text("")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    found = site.Site()
    text = site._rewritten("docs/a.md", "a.md", {"docs/a.md": "a.md"}, found)
    assert found.broken == ["docs/a.md: b.md"]
    assert text.splitlines()[1:] == ["[b](b.md) [a](a.md#x) `[n](file)`", "```", "[c](c.md)", "```", "`s`"]


def test_a_link_between_two_pieces_of_code_is_a_link(monkeypatch, tmp_path):
    (tmp_path / "docs").mkdir()
    text = "`a/`, [b](../b.md): with `c` on, [`d`](../b.md) and ``[e](`f`)`` `g`"
    (tmp_path / "docs" / "a.md").write_text(text)
    monkeypatch.setattr(site, "ROOT", tmp_path)
    found = site.Site()
    pages = {"docs/a.md": "x/a.md", "b.md": "b.md"}
    assert site._rewritten("docs/a.md", "x/a.md", pages, found) == text.replace("(../b.md)", "(../b.md)")
    assert site._rewritten("docs/a.md", "a.md", pages, found) == text.replace("(../b.md)", "(b.md)")
    assert found.broken == []


def test_the_program_itself_finds_what_leads_nowhere_in_a_built_site(tmp_path):
    (tmp_path / "index.html").write_text("<title>a</title><a href=b.html>b</a> <a href=gone/>c</a>")
    (tmp_path / "b.html").write_text("<title>b</title><a href=index.html>a</a>")
    assert sorted(site.crawled(tmp_path)) == [": gone/", "index.html: gone/"]


def test_a_wrong_anchor_is_named_with_its_page():
    """Anchors are those of headings, a repeated one with a number; code has none."""
    found = site.Site()
    found.pages["a.md"] = (
        "# One `x`: two\n## One\n## One\n```\n# no\n```\n[t](#one-x-two) [u](b.md#to-do) [v](#one_1) [w](#no)"
    )
    found.pages["b.md"] = "# To do\n[x](a.md#one) [y](a.md#gone) [z](https://a.test/#z)"
    site.check_anchors(found)
    assert found.broken == ["a.md: #no", "b.md: a.md#gone"]


def test_versions_are_listed_the_newest_first(tmp_path):
    """A patch replaces its minor version; `latest` is the highest one, not the last that was added."""
    for number in ("0.9.0", "0.10.0", "0.9.1"):
        built = tmp_path / "built" / number
        built.mkdir(parents=True)
        (built / "index.html").write_text(number)
        site.publish(built, tmp_path / "all", number)
    rows = json.loads((tmp_path / "all" / "versions.json").read_text())
    assert [(one["version"], one["title"], one["aliases"]) for one in rows] == [
        ("0.10", "0.10.0", ["latest"]),
        ("0.9", "0.9.1", []),
    ]
    pages = {one.parent.name: one.read_text() for one in (tmp_path / "all").glob("*/index.html")}
    assert pages == {"0.10": "0.10.0", "0.9": "0.9.1", "latest": "0.10.0"}
    assert "latest/" in (tmp_path / "all" / "index.html").read_text()


def test_the_references_name_every_command_and_operation(assembled):
    commands = assembled.pages["reference/commands.md"]
    assert "### nephila rules induce" in commands
    assert "| `--max-pages` |" in commands
    operations = assembled.pages["reference/operations.md"]
    assert "## POST /api/v1/jobs/{name}/pause" in operations
    assert "| `held_generation` |" in operations
