"""The words of reasons in Chinese."""

from __future__ import annotations

import pytest
from nephila.kernel.reasons.table import Reason, words
from nephila_console.messages import language, table
from nephila_console.words import cause


@pytest.fixture
def chinese():
    """The language of a request."""
    before = language.set("zh")
    yield
    language.reset(before)


def test_each_reason_has_words_in_chinese():
    missing = [str(reason) for reason in Reason if reason.row.words not in table("zh")]
    assert missing == []


def test_reasons_by_status_are_one_text(chinese):
    assert cause(words("failed", "http_404")) == "服务器返回 404"
    assert cause(words("failed", "http_799")) == "服务器返回 799"
    assert cause(words("failed", "tunnel_403")) == "其代理以状态 403 拒绝 CONNECT"


def test_a_reason_of_a_newer_version_is_shown_as_it_is(chinese):
    assert cause(words("failed", "100% new")) == "failed (100% new)"


def test_in_english_a_status_keeps_its_name():
    assert cause(words("failed", "http_404")) == "the server answered 404 (not found)"
