"""The folders of examples/, run as a reader runs them, against a small site."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.e2e.web import Reply, page, serve
from tests.required import required
from tools.helm import find
from tools.install import Missing

EXAMPLES = Path(__file__).parents[2] / "examples"
FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>n</title>
<item><title>One</title><link>http://news.test/one</link></item></channel></rss>"""
pytestmark = pytest.mark.full


def html(title, body):
    return Reply(
        f"<html><title>{title}</title><link rel=stylesheet href=/s.css><body><main><h1>{title}</h1>{body}</main>"
    )


class Site:
    """What the hosts answer; `price` and `dead` may change."""

    price = "10,00 €"
    dead = False

    def __call__(self, request):
        host, path = request.host.partition(".")[0], request.path
        if path == "/robots.txt":
            return Reply("", 404)
        if path == "/s.css":
            return Reply("h1 {color: red}", type="text/css")
        answer = getattr(self, host, None)
        return answer(path) if answer else None

    def docs(self, path):
        text = "<p>To install the kettle, fill it with water and press the lever until it clicks.</p>"
        pages = {
            "/": html("Manual", '<p>All about it.</p><a href="/install">install</a>'),
            "/install": html("Install", text),
        }
        return pages.get(path)

    def shop(self, path):
        product = f"<p class=price>{self.price}</p><p class=stock>yes</p>"
        return {"/": page("/p/kettle"), "/p/kettle": html("Red kettle", product)}.get(path)

    def news(self, path):
        article = html("One", "<p>An article with some words that make it long enough to be the text of a page.</p>")
        return {"/feed.xml": Reply(FEED, type="application/rss+xml"), "/one": article}.get(path)

    def links(self, path):
        return {"/": page("/gone" if self.dead else "/there"), "/there": page()}.get(path)

    def kettles(self, path):
        kettle = html("Red kettle", "<p class=capacity>Holds 1,7 l</p>")
        return {"/": page("/kitchen/kettle-8"), "/kitchen/kettle-8": kettle}.get(path)

    def board(self, path):
        if path.startswith("/search") and "p=1" in path:
            return Reply(
                "<html><body><div class=result><a href=/t/1>one</a></div><div class=result><a href=/t/2>two</a></div>"
            )
        about = {"/t/1": "green sencha tea is brewed at eighty degrees", "/t/2": "black coffee"}.get(path)
        return html("Post", f"<p>{about}, as everybody knows who has tried it more than once.</p>") if about else None


@pytest.fixture
def example(tmp_path):
    """Runs an example; returns (exit code, output). `NAME/out` is in tmp_path."""
    site = Site()
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    program = bin_directory / "nephila"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m nephila "$@"\n')
    program.chmod(0o755)
    with serve(site) as web:

        def run(name, code=0, **variables):
            options = f"{run.reached} --delay 0"
            environment = {
                **os.environ,
                "PATH": f"{bin_directory}:{os.environ['PATH']}",
                "OUT": str(tmp_path / name),
                "NEPHILA_OPTIONS": options,
                **variables,
            }
            words = ["sh", str(EXAMPLES / name / "run.sh")]
            done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == code, done.stdout + done.stderr
            return done.stdout

        run.site, run.out, run.reached = site, tmp_path, f"--allow-private --host-map {web.host_map}"
        yield run


def test_documentation_for_retrieval(example):
    told = example("documentation-for-retrieval", SITE="http://docs.test/", QUESTION="fill water lever")
    assert "http://docs.test/install" in told.splitlines()[-2]
    assert "press the lever" in told


def test_product_monitor(example):
    example("product-monitor", SITE="http://shop.test/")
    rows = list(csv.DictReader((example.out / "product-monitor" / "products.csv").read_text().splitlines()))
    assert [row["name"] for row in rows] == ["Red kettle"]
    assert (rows[0]["price.amount"], rows[0]["price.currency"]) == ("10.0", "EUR")


def test_product_monitor_ends_with_webhooks_too(example):
    """A call from cron delivers what has changed, and is over."""
    secret = example.out / "secret"
    secret.write_text("whsec_" + "QUJD" * 12)
    hooks = example.out / "hooks.yaml"
    hook = {"name": "shop", "url": "https://receiver.test/", "secret_file": str(secret), "changes": ["gone"]}
    hooks.write_text(json.dumps({"webhooks": [hook]}))
    example("product-monitor", SITE="http://shop.test/", HOOKS=str(hooks))
    assert (example.out / "product-monitor" / "webhooks.db").exists()


def test_python_functions(example):
    example("python-functions", SITE="http://kettles.test/")
    rows = list(csv.DictReader((example.out / "python-functions" / "kettles.csv").read_text().splitlines()))
    assert [(row["name"], row["capacity"], row["shelf"]) for row in rows] == [("Red kettle", "1.7", "kitchen")]


def test_news_feeds(example):
    example("news-feeds", FEED="http://news.test/feed.xml")
    assert "http://news.test/one" in (example.out / "news-feeds" / "changes.xml").read_text()
    example("news-feeds")  # the second call fetches what is due


def test_warc_archive(example):
    example("warc-archive", SITE="http://docs.test/")
    with zipfile.ZipFile(example.out / "warc-archive" / "site.wacz") as archive:
        pages = archive.read("pages/pages.jsonl").decode()
        assert "http://docs.test/install" in pages
    assert "text/css" in (example.out / "warc-archive" / "index.cdxj").read_text()


def test_keyword_schemes(example):
    told = example("keyword-schemes", NEPHILA_OPTIONS=example.reached)
    assert "teas" in told
    records = [
        json.loads(line) for line in (example.out / "keyword-schemes" / "records.jsonl").read_text().splitlines()
    ]
    assert len(records) == 1
    assert "sencha" in json.dumps(records)


def test_broken_links(example):
    assert "no broken link" in example("broken-links", SITE="http://links.test/")
    shutil.rmtree(example.out / "broken-links")
    example.site.dead = True
    assert "http://links.test/gone" in example("broken-links", code=1, SITE="http://links.test/")


def test_files_of_the_distributed_examples():
    """A reader's values are known to the chart, and the job to its schema."""
    ours = yaml.safe_load((EXAMPLES / "kubernetes-rules-from-git" / "values.yaml").read_text())
    known = yaml.safe_load((EXAMPLES.parent / "charts" / "nephila" / "values.yaml").read_text())
    assert set(ours["rules"]["git"]) <= set(known["rules"]["git"])
    assert set(ours["rules"]) <= set(known["rules"])
    from nephila.kernel.documents import job_document

    job_document.from_json(yaml.safe_load((EXAMPLES / "kubernetes-rules-from-git" / "crawljob.yaml").read_text()))
    services = yaml.safe_load((EXAMPLES.parent / "compose.yaml").read_text())["services"]
    three = yaml.safe_load((EXAMPLES / "distributed-compose" / "three-downloaders.yaml").read_text())["services"]
    assert set(three) <= set(services)


def test_the_chart_renders_with_the_values_of_the_example():
    chart = str(EXAMPLES.parent / "charts" / "nephila")
    values = str(EXAMPLES / "kubernetes-rules-from-git" / "values.yaml")
    with required(Missing):
        command = [str(find()), "template", "nephila", chart, "--kube-version", "1.34.0", "-f", values]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "https://git.example.org/crawl-rules.git" in done.stdout


def test_each_folder_is_in_the_table():
    table = (EXAMPLES / "README.md").read_text()
    folders = [one.name for one in EXAMPLES.iterdir() if one.is_dir()]
    assert len(folders) == 9
    assert [name for name in folders if f"[{name}]({name}/run.sh)" not in table] == []
