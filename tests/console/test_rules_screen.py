"""The screen of rules: which field broke, which jobs use a rule, and the way back to a version before."""

from __future__ import annotations

import pytest
from lxml import html as parser
from nephila_console.screens.rules import card
from nephila_control import requests, rule_types
from nephila_control.access.roles import Role
from nephila_control.job_types import ApplyJob

from tests.console.console_rig import console
from tests.control.documents import document, rule


def health(name, *fields, degraded=False):
    fills = [rule_types.FieldFill(name=field, now=now, usual=usual) for field, now, usual in fields]
    return rule_types.RuleHealth(rule=name, version=1, degraded=degraded, pages=50, fill_rate=0.9, fields=fills)


async def versions_page(browser, name="shop"):
    return parser.fromstring((await browser.get(f"/console/rules?name={name}")).text)


def rolled_back(page):
    """Fields of the form of the newest earlier version."""
    form = page.xpath("//details//form")[0]
    return {field.get("name"): field.get("value") for field in form.xpath(".//input[not(@name='csrf')]")}


@pytest.mark.parametrize(
    ("now", "usual", "trend"), [(0.5, 0.9, -0.4), (0.9, 0.5, 0.4), (0.9, 0.91, 0.0), (0.3, 0.0, 0.0)]
)
def test_the_trend_of_a_field_is_its_distance_from_the_usual_share(now, usual, trend):
    (row,) = card(rule_types.Rule(name="shop", version=1, document={}), health("shop", ("price", now, usual))).fields
    assert row.trend == pytest.approx(trend)


def test_fields_of_the_document_come_first_and_need_no_health():
    fields = {"spec": {"fields": {"title": {}, "price": {}}}}
    rows = card(
        rule_types.Rule(name="shop", version=1, document=fields), health("shop", ("price", 1, 1), ("old", 1, 1))
    )
    assert [(row.name, row.fill is None) for row in rows.fields] == [("title", True), ("price", False), ("old", False)]


async def test_cards_have_a_bar_for_each_field_and_the_degraded_rule_is_first(tmp_path, monkeypatch):
    async def rule_health(self, request):
        return rule_types.RuleHealthList(rules=[health("zoo", ("title", 0.12, 0.98), degraded=True)])

    monkeypatch.setattr("nephila_control.operations.Operations.rule_health", rule_health)
    async with console(tmp_path) as rig:
        await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule("zoo")]))
        await rig.control.apply_job(ApplyJob(job=document("zoo-news", paused=True, rules=["zoo"])))
        page = parser.fromstring((await (await rig.opened()).get("/console/rules")).text)
        cards = page.xpath("//section[.//h2]")
        assert [part.xpath("string(.//h2)") for part in cards] == ["zoo", "shop"]
        assert cards[0].xpath(".//*[@role='img']/@aria-label") == ["12 % of the last pages, usually 98 %"]
        assert "▼ 86 %" in cards[0].text_content()
        assert cards[0].xpath(".//a[@href='/console/jobs/zoo-news']")
        assert "no job uses it" in cards[1].text_content()


async def test_a_rule_is_rolled_back_from_its_difference(tmp_path):
    async with console(tmp_path) as rig:
        await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule(css="h2")]))
        browser = await rig.opened()
        page = await versions_page(browser)
        assert page.xpath("//details//span[@class='add']/text()") == ["+  fields: {title: {css: h1}}"]
        await browser.post("/console/rules/shop", rolled_back(page))
        assert browser.shown == "/console/rules?name=shop&notice=changed"
        (now,) = (await rig.control.list_rules(requests.Empty())).rules
        assert now.document["spec"]["fields"]["title"]["css"] == "h1"


async def test_a_rule_that_somebody_else_changed_meanwhile_is_not_rolled_back(tmp_path):
    async with console(tmp_path) as rig:
        await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule(css="h2")]))
        browser = await rig.opened()
        fields = rolled_back(await versions_page(browser))
        await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule(css="h3")]))
        answer = await browser.post("/console/rules/shop", fields)
        assert (answer.status_code, "was changed since" in answer.text) == (409, True)
        fields = {**rolled_back(await versions_page(browser)), "etag": "0" * 16}
        assert (await browser.post("/console/rules/shop", fields)).status_code == 404
        assert (await browser.post("/console/rules/none", fields)).status_code == 404


async def test_a_viewer_sees_versions_and_no_way_to_change_them(tmp_path):
    async with console(tmp_path) as rig:
        await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule(css="h2")]))
        browser = rig.of_role(Role.VIEWER)
        page = await versions_page(browser)
        assert page.xpath("//details")
        assert page.xpath("//main//form") == []
        listed = parser.fromstring((await browser.get("/console/rules")).text)
        assert listed.xpath("//main//a[contains(@href, 'studio')]") == []
        versions = (await rig.control.list_rule_versions(rule_types.RuleName(name="shop"))).versions
        fields = {"etag": versions[1].etag, "current": versions[0].etag}
        assert (await browser.post("/console/rules/shop", fields)).status_code == 403


def sample(at, version, items, **fields):
    return rule_types.RuleSample(at=at, version=version, pages=10, items=items, fields=fields)


async def test_a_rule_shows_how_its_fields_went_over_its_versions(tmp_path, monkeypatch):
    history = [sample(1.0, 1, 0.9, title=0.9), *(sample(float(at), 2, 0.5, title=at / 10) for at in range(2, 6))]
    async with console(tmp_path) as rig:
        await rig.control.apply_rules(rule_types.ApplyRules(rules=[rule(css="h2")]))
        inner = rig.control.list_rule_versions

        async def list_rule_versions(self, request):
            answer = await inner(request)
            answer.history = history
            return answer

        browser = await rig.opened()
        assert not (await versions_page(browser)).xpath("//figure")
        monkeypatch.setattr("nephila_control.operations.Operations.list_rule_versions", list_rule_versions)
        page = await versions_page(browser)
        (figure,) = page.xpath("//figure")
        assert len(figure.xpath(".//*[@class='begun']")) == 2  # in the wide and in the narrow drawing
        assert page.xpath("//*[@aria-label='title over time']")
        history = history[:2]
        assert "A curve begins" in (await versions_page(browser)).text_content()
