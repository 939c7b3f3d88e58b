"""`nephila rules …`: rules as code."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

HEAD = "apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {name: shop}\nspec:\n"
RULE = (
    HEAD + "  match: {url: '^https://a\\.test/p/'}\n  fields:\n    name: {css: h1, required: true}\n    price: .price\n"
)
PAGE = "<!-- url: https://a.test/p/1 --><h1>Kettle</h1><p class=price>5</p>"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A rule with its page, and no items yet."""
    folder = tmp_path / "rules" / "shop"
    folder.mkdir(parents=True)
    (folder / "rule.yaml").write_text(RULE)
    (folder / "page.html").write_text(PAGE)
    return folder


def test_a_rule_is_its_own_test(nephila, shop):
    """Without items it has failed; written once they are what is expected from then on."""
    ran = nephila("rules", "test", str(shop))
    assert (ran.code, "--write creates it" in ran.out) == (1, True)
    assert nephila("rules", "test", str(shop), "--write").code == 0
    assert json.loads((shop / "items.json").read_text()) == [{"name": "Kettle", "price": "5"}]
    ran = nephila("rules", "test", str(shop.parent))
    assert (ran.code, ran.out) == (0, f"ok shop ({shop / 'page.html'}): 1 items\n")


def test_a_change_of_the_page_is_told_with_its_place(nephila, shop):
    """Every difference: another value, one that is gone, one that was not expected."""
    nephila("rules", "test", str(shop), "--write")
    (shop / "page.html").write_text(PAGE.replace("class=price", "class=prices"))
    ran = nephila("rules", "test", str(shop))
    assert ran.code == 1
    assert 'items[0].price: expected "5", got null' in ran.out
    (shop / "page.html").write_text(PAGE.replace("/p/1", "/q/1"))
    assert "does not match its URL https://a.test/q/1" in nephila("rules", "test", str(shop)).out
    answer = json.loads(nephila("rules", "test", str(shop), "--json").out)
    assert (answer["ok"], answer["rule"]) == (False, "shop")


def test_a_rule_without_a_page_has_failed(nephila, shop):
    """Nothing says that it works; a page without a URL says too little."""
    (shop / "page.html").write_text("<h1>x")
    assert "its URL is not known" in nephila("rules", "test", str(shop)).out
    (shop / "page.html").unlink()
    assert "the rule is not tested" in nephila("rules", "test", str(shop)).out


def test_pages_may_be_an_archive(nephila, shop):
    """page.warc.gz: the pages in it that are the rule's."""
    (shop / "page.html").unlink()
    buffer = io.BytesIO()
    writer = WARCWriter(buffer, gzip=True)
    for url in ("https://a.test/p/1", "https://a.test/other", "https://a.test/p/2"):
        headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1")
        body = f"<h1>{url[-1]} ż</h1>".encode()
        made = {"payload": io.BytesIO(body), "length": len(body), "http_headers": headers}
        writer.write_record(writer.create_warc_record(url, "response", **made))
    (shop / "page.warc.gz").write_bytes(buffer.getvalue())
    assert nephila("rules", "test", str(shop), "--write").code == 0
    assert [item["name"] for item in json.loads((shop / "items.json").read_text())] == ["1 ż", "2 ż"]
    (shop / "page.warc.gz").write_bytes(gzip.compress(b"nothing"))
    ran = nephila("rules", "test", str(shop))
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "has no page that can be read" in ran.err


def test_lint_tells_mistakes_and_doubts(nephila, shop):
    """Each with its place; a file that cannot be read does not hide the next; only mistakes end with 1."""
    assert nephila("rules", "lint", str(shop)).code == 0
    for name, text in (
        ("any", RULE.replace("shop", "any").replace("^https://a\\.test/p/", ".")),
        ("bad", RULE.replace("shop", "bad").replace("css: h1", "cs: h1")),
        ("twin", RULE),
        ("default", RULE.replace("shop", "default").replace("required: true", "type: number, default: none")),
        ("constant", RULE.replace("shop", "constant").replace("css: h1", "constant: x, type: date")),
        ("rival", RULE.replace("shop", "another").replace("^https", "https").replace(", required: true", "")),
    ):
        (shop.parent / name).mkdir()
        (shop.parent / name / "rule.yaml").write_text(text)
    ran = nephila("rules", "lint", str(shop.parent))
    assert ran.code == 1
    assert "matches every URL" in ran.out
    assert "rule.yaml:7:12: error: unknown key 'cs' in spec.fields.name; did you mean 'css'?" in ran.out
    assert "the rule 'shop' comes twice" in ran.out
    assert "no field is required" in ran.out
    assert "default/rule.yaml:1:1: warning: name: the default 'none' is not used: no number in it" in ran.out
    assert "constant/rule.yaml:1:1: warning: name: the constant 'x' is not used: no date in it" in ran.out
    assert "has no ^" in ran.out
    assert "'another' matches https://a.test/p/1 as well and wins by its name" in ran.out
    levels = [
        json.loads(line)["level"] for line in nephila("rules", "lint", str(shop.parent), "--json").out.splitlines()
    ]
    assert levels.count("error") == 2


def test_try_says_what_nearly_matched(nephila, shop, tmp_path):
    """For each empty field; on a file of any name."""
    page = tmp_path / "x.html"
    page.write_text("<h1>Stand</h1><div class=prices>7</div>")
    ran = nephila("rules", "try", str(page), "-r", str(shop), "--url", "https://a.test/p/9")
    assert ran.code == 0
    assert ran.out == "name: Stand\nprice: null\n"
    assert "price is empty" in ran.err
    assert "css '.prices' selects 1: '7'" in ran.err
    answer = json.loads(
        nephila("rules", "try", str(page), "-r", str(shop), "--url", "https://a.test/p/9", "--json").out
    )
    assert answer["items"] == [{"name": "Stand", "price": None}]
    assert "'.prices'" in answer["empty"]["price"][0]


@pytest.mark.parametrize(
    ("field", "page", "hint"),
    [
        ("{css: 'main .box h2'}", "<div class=box><h2>T</h2>", "css '.box h2' selects 1: 'T'"),
        ("{css: 'p.a:first-child'}", "<i></i><p class=a>T", "css 'p.a' selects 1: 'T'"),
        ("{css: a, attr: data-x}", "<a href=/ data-y=1>T", "without the attribute 'data-x'; there are: href, data-y"),
        ("{css: p, regex: '(\\d+)'}", "<p>none</p>", "css gives 'none', in which regex"),
        ("{css: script, jsonpath: $.x}", '<script>{"y": 1}</script>', "in which jsonpath has no match"),
        ("{meta: 'og:titel'}", "<meta property=og:title content=x>", "the page has meta: og:title"),
        ("{jsonld: Recipe}", '<script type="application/ld+json">{"@type": "Recipes"}</script>', "jsonld: Recipes"),
        ("{itemprop: pric}", "<i itemprop=price>1</i>", "the page has itemprop: price"),
        ("{xpath: \"//div[@id='a']/p[@x]\"}", "<div id=a><p>T</p></div>", "selects 1: 'T'"),
        ("{css: q}", "<p>", "no similar selector matches the page"),
        (
            "{jsonld: Review, fields: {stars: {jsonpath: $.rating.stars}}}",
            '<script type="application/ld+json">[{"@type": "Review", "rating": {"value": 4}}]</script>',
            "jsonpath '$.rating' gives 1; the first has: value",
        ),
    ],
)
def test_hints_for_every_kind_of_selector(nephila, tmp_path, field, page, hint):
    """Each was tried on the page."""
    (tmp_path / "rule.yaml").write_text(f"{HEAD}  match: {{url: a}}\n  fields: {{f: {field}}}\n")
    (tmp_path / "x.html").write_text(page)
    ran = nephila("rules", "try", str(tmp_path / "x.html"), "-r", str(tmp_path), "--url", "http://a/")
    assert hint in ran.err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("try", "x.html", "--url", "https://b.test/"), 2, "none of 1 rules is for https://b.test/"),
        (("try", "x.html", "--rule", "shopp"), 2, "there is no rule 'shopp'; did you mean 'shop'?"),
        (("try", "nowhere.html"), 1, "cannot read nowhere.html"),
        (("test", "nowhere"), 2, "is neither a file nor a directory"),
        (("lint", "empty"), 2, "holds no rule.yaml"),
        (("apply", "--from", "empty"), 2, "holds no stored pages"),
        (("apply", "--from", "crawled"), 2, "the crawl in crawled kept no pages; crawl with --keep-raw"),
        (("apply", "--from", "x.html", "--write"), 2, "has no nephila.db to write to"),
        (("diff", "rules", "rules", "y.html"), 1, "none of the pages is for one of these rules"),
        (("init", "rules/shop"), 1, "exists already"),
    ],
)
def test_what_cannot_be_done_is_one_line(nephila, shop, tmp_path, monkeypatch, words, code, says):
    """With the remedy."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "crawled").mkdir()
    for name in ("run.json", "rules.json"):
        (tmp_path / "crawled" / name).write_text("{}")
    (tmp_path / "x.html").write_text("<h1>x")
    (tmp_path / "y.html").write_text("<!-- url: http://elsewhere/ --><h1>x")
    ran = nephila("rules", *words)
    assert (ran.code, ran.err.count("\n")) == (code, 1)
    assert says in ran.err


def test_diff_tells_what_is_gained_and_lost(nephila, shop, tmp_path):
    """Field by field over pages; exit code 1 when a value is lost."""
    new = tmp_path / "new.yaml"
    new.write_text(RULE.replace("price: .price", "price: {css: .price, type: integer}\n    none: b"))
    ran = nephila("rules", "diff", str(shop), str(new), str(shop))
    assert (ran.code, "price: 1 before, 1 after: 1 changed" in ran.out) == (0, True)
    ran = nephila("rules", "diff", str(new), str(shop), str(shop), "--json")
    result = json.loads(ran.out)["fields"]["price"]
    assert (result["changed"], result["examples"]) == (1, [{"url": "https://a.test/p/1", "before": 5, "after": "5"}])
    new.write_text(RULE.replace("    price: .price\n", ""))
    ran = nephila("rules", "diff", str(shop), str(new), str(shop))
    assert (ran.code, "price: 1 before, 0 after: 1 lost" in ran.out) == (1, True)


def test_functions_in_python_need_their_directory(nephila, shop, tmp_path):
    """lint says what to name, and with the directory which function is missing; the other commands call them."""
    rule = shop / "rule.yaml"
    rule.write_text(RULE.replace("price: .price", 'price: {css: .price, py: "prices:twice"}'))
    ran = nephila("rules", "lint", str(shop))
    assert (ran.code, ran.out.count("warning: its Python functions are not checked: ")) == (0, 1)
    assert "--functions DIR" in ran.out
    folder = tmp_path / "functions"
    words = ("--functions", str(folder))
    ran = nephila("rules", "lint", str(shop), *words)
    assert (ran.code, "functions does not exist" in ran.err) == (2, True)
    folder.mkdir()
    (folder / "prices.py").write_text("def thrice(value):\n    return value * 3\n")
    ran = nephila("rules", "lint", str(shop), *words)
    assert (ran.code, "error: py: prices.py defines no function 'twice'; did you mean 'thrice'?" in ran.out) == (
        1,
        True,
    )
    (folder / "prices.py").write_text("def twice(value):\n    return value * 2\n")
    assert nephila("rules", "lint", str(shop), *words).code == 0
    assert nephila("rules", "test", str(shop), "--write", *words).code == 0
    assert json.loads((shop / "items.json").read_text()) == [{"name": "Kettle", "price": "55"}]
    page = str(shop / "page.html")
    ran = nephila("rules", "try", page, "--rules", str(shop), "--json", *words)
    assert json.loads(ran.out)["items"] == [{"name": "Kettle", "price": "55"}]
    ran = nephila("rules", "apply", "--from", page, "--rules", str(shop), "--items", *words)
    assert json.loads(ran.out)["data"] == {"name": "Kettle", "price": "55"}
    ran = nephila("rules", "test", str(shop))
    assert (ran.code, "there is no directory of Python functions" in ran.out + ran.err) == (1, True)


def test_fmt_keeps_comments_and_meaning(nephila, tmp_path):
    """Keys in the schema's order; a second time nothing changes."""
    file = tmp_path / "rule.yaml"
    file.write_text(
        "# head\nkind: ParseRule\napiVersion: 'nephila.dev/v1'\nmetadata: {name: r}\nspec:\n  fields:\n"
        "    # about b\n    b:   {type: number, css: 'a#b'} # beside b\n    a: {constant: 'no'}\n"
        "    s:\n      js: |\n        v => {\n          return v # no comment\n        }\n"
        "  match:\n    url: ['x # y']\n# end\n"
    )
    assert nephila("rules", "fmt", "--check", str(file)).code == 1
    assert nephila("rules", "fmt", str(file)).code == 0
    assert file.read_text() == (
        "# head\napiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {name: r}\nspec:\n"
        '  match: {url: ["x # y"]}\n  fields:\n    # about b\n    # beside b\n    b: {css: "a#b", type: number}\n'
        '    a: {constant: "no"}\n    s:\n      js: |\n        v => {\n          return v # no comment\n        }\n'
        "# end\n"
    )
    ran = nephila("rules", "fmt", "--check", str(file))
    assert (ran.code, ran.out) == (0, "")


@pytest.mark.parametrize(
    "field",
    ['    a:\n      css: p\n      join: "x\\n\\n"\n', "    a:\n      css: p\n", "    a: {css: p, regex: 'b'}\n"],
)
def test_what_fmt_wrote_it_leaves_alone(nephila, tmp_path, field):
    """A rule with one field in several lines has one line a field afterwards, and stays so."""
    path = tmp_path / "rule.yaml"
    path.write_text(HEAD + "  match: {url: ^x}\n  fields:\n" + field)
    nephila("rules", "fmt", str(path))
    assert nephila("rules", "fmt", str(path), "--check").code == 0


def test_init_begins_a_rule_that_passes_its_test(nephila, tmp_path):
    """From nothing, and from a page with what is on it."""
    assert nephila("rules", "init", str(tmp_path / "one")).code == 0
    page = tmp_path / "p.html"
    page.write_text(
        '<!-- url: https://n.test/2026/x --><h1>T</h1><time datetime="2026-01-02"></time><meta name=author content=A>'
    )
    assert nephila("rules", "init", str(tmp_path / "two"), "--page", str(page)).code == 0
    assert json.loads((tmp_path / "two" / "items.json").read_text()) == [
        {"title": "T", "published": "2026-01-02", "author": "A"}
    ]
    assert r"url: '^https://n\.test/\d{4}/'" in (tmp_path / "two" / "rule.yaml").read_text()
    assert nephila("rules", "test", str(tmp_path)).code == 0
    assert nephila("rules", "lint", str(tmp_path)).code == 0


def test_schema_is_that_of_the_documents(nephila):
    """For editors and CI."""
    ran = nephila("rules", "schema")
    assert json.loads(ran.out)["title"] == "ParseRule"


SECOND = (
    HEAD + "  match: {url: '^https://a\\.test/p/\\d+$'}\n  fields:\n    name: {css: h1, required: true}\n"
    "  followUps:\n    reviews: {css: a.r, url: '/reviews$', fields: {stars: {css: .stars, type: number}}}\n"
)


def test_items_are_completed_from_the_second_page_beside_it(nephila, shop):
    """Test, try and lint of a rule with a second page; without that page the items say what they wait for."""
    (shop / "rule.yaml").write_text(SECOND)
    (shop / "page.html").write_text(PAGE + "<a class=r href=/p/1/reviews>r</a>")
    assert nephila("rules", "test", str(shop), "--write").code == 0
    mark = {"reviews": {"url": "https://a.test/p/1/reviews", "why": "not fetched yet"}}
    waiting = {"name": "Kettle", "stars": None, "_incomplete": mark}
    assert json.loads((shop / "items.json").read_text()) == [waiting]
    (shop / "page-reviews.html").write_text("<!-- url: https://a.test/p/1/reviews --><p class=stars>4,5</p>")
    ran = nephila("rules", "test", str(shop))
    assert (ran.code, "items[0].stars: expected null, got 4.5" in ran.out) == (1, True)
    assert nephila("rules", "test", str(shop), "--write").code == 0
    assert json.loads((shop / "items.json").read_text()) == [{"name": "Kettle", "stars": 4.5}]
    assert not (shop / "items-reviews.json").exists()
    answer = json.loads(nephila("rules", "try", str(shop / "page.html"), "-r", str(shop), "--json").out)
    assert (answer["rule"], answer["second_pages"]) == ("shop", ["https://a.test/p/1/reviews"])
    answer = json.loads(nephila("rules", "try", str(shop / "page-reviews.html"), "-r", str(shop), "--json").out)
    assert (answer["rule"], answer["items"]) == ("shop/reviews", [{"stars": 4.5}])
    (shop / "rule.yaml").write_text(SECOND.replace("/reviews$", ".*"))
    assert "followUps.reviews.url '.*' matches every URL" in nephila("rules", "lint", str(shop)).out


def test_a_rule_that_had_to_be_given_up_has_failed_its_test(nephila, shop, monkeypatch):
    """It gives no items, and that none are expected does not make it good."""
    from dataclasses import replace

    from nephila_rules.runtime import task

    monkeypatch.setattr(task, "RULES", replace(task.RULES, wall_s=0.5))
    work = "count(//*[count(//*[count(//*[count(//*[count(//*) > 1]) > 1]) > 1]) > 1])"
    (shop / "rule.yaml").write_text(HEAD + f"  match: {{url: '^https'}}\n  fields: {{n: {{xpath: '{work}'}}}}\n")
    (shop / "page.html").write_text(PAGE + "<b>x</b>" * 3000)
    (shop / "items.json").write_text("[]")
    ran = nephila("rules", "test", str(shop))
    assert (ran.code, "the rule failed: rules: timeout" in ran.out) == (1, True)


def test_lint_tells_all_mistakes_of_a_file(nephila, shop):
    """Each on a line of its own with its place, those of several documents too."""
    (shop / "rule.yaml").write_text(
        "apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {name: a}\nspec:\n  match: {url: '('}\n  colour: red\n"
        "  fields:\n    x: {css: 'p[', type: numbr}\n    2x: {css: p}\n---\n"
        "apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {}\nspec: {fields: {y: {css: p}}}\n"
    )
    ran = nephila("rules", "lint", str(shop))
    assert ran.code == 1
    result = [line for line in (ran.out + ran.err).splitlines() if "rule.yaml:" in line]
    assert [int(line.partition("rule.yaml:")[2].partition(":")[0]) for line in result][:5] == [5, 6, 8, 8, 9]
    assert any("lacks the key 'name'" in line for line in result)
    assert any("lacks the key 'match'" in line for line in result)
    assert len(result) == len(set(result)) == 7


def test_a_fifo_is_no_rule(nephila, shop):
    """Opening one waits for a writer; it is refused in one line, and one beside a rule is no page."""
    os.mkfifo(shop / "page-2.html")
    (shop / "rule.yaml").unlink()
    os.mkfifo(shop / "rule.yaml")
    for words in (["lint"], ["test"]):
        ran = nephila("rules", *words, str(shop))
        assert ran.code
        assert "no regular file" in ran.out + ran.err
    assert "no regular file" in nephila("rules", "lint", str(shop / "rule.yaml")).out


def test_what_json_has_no_word_for(nephila, shop):
    """Half an emoji and Infinity in a page's data neither stop a command nor reach an item."""
    rule = RULE.partition("spec:")[0] + "spec:\n  match: {url: '^https://a'}\n  fields:\n    d: {jsonld: Product}\n"
    (shop / "rule.yaml").write_text(rule)
    data = '{"@type": "Product", "a": "x\\ud83d", "b": Infinity, "c": [NaN, -1e999, 1.5], "\\udc00": 1}'
    (shop / "page.html").write_text(
        f'<!-- url: https://a.test/p/1 --><script type="application/ld+json">{data}</script>', "utf-8"
    )
    ran = nephila("rules", "apply", "--from", str(shop), "--rules", str(shop), "--items")
    assert ran.code == 0, ran.err
    found = ran.out
    assert "\ufffd" in found or "\\ufffd" in found
    assert "Infinity" not in found
    assert "NaN" not in found
