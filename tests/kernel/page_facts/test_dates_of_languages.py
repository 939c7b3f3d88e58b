"""Dates as pages of many languages write them: in lines, in <time>, in fields of rules."""

from __future__ import annotations

import pytest
from nephila.kernel.page_facts.iso_dates import iso_date
from nephila.kernel.page_facts.published import as_date, line_dates

DATES = [
    *(
        "2026年11月21日",
        "2026年 11月 21日",
        "2026년 11월 21일",
        "令和8年11月21日",
        "民國115年11月21日",
        "2026. 11. 21.",
    ),
    *("21 Kasım 2026", "21 KASIM 2026", "21. listopadu 2026", "21 listopada 2026", "21 lis 2026", "21. novembra 2026"),
    *(
        "21 نوفمبر 2026",
        "٢١ نوفمبر ٢٠٢٦",
        "21 تشرين الثاني 2026",
        "21 листопада 2026",
        "21 ноября 2026",
        "21 ноември 2026",
    ),
    *("21 Νοεμβρίου 2026", "2026. november 21.", "21 noiembrie 2026", "21. marraskuuta 2026", "21 בנובמבר 2026"),
    *("21 नवंबर 2026", "21 พฤศจิกายน 2569", "21 tháng 11, 2026", "21 de novembre de 2026", "2026 m. lapkričio 21 d."),
]


@pytest.mark.parametrize("text", DATES)
def test_a_date_of_any_language_is_read(text: str) -> None:
    assert iso_date(text) == as_date(text) == "2026-11-21"


@pytest.mark.parametrize("text", [text for text in DATES if "lapk" not in text])
def test_a_line_with_it_is_the_date_of_publication(text: str) -> None:
    assert line_dates(text).published == "2026-11-21"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("2026年11月21日 下午3:30", "2026-11-21T15:30:00"),
        ("2026年11月21日 15時05分", "2026-11-21T15:05:00"),
        ("2026년 11월 21일 오전 9시 5분", "2026-11-21T09:05:00"),
        ("21 Kasım 2026 15:30", "2026-11-21T15:30:00"),
        ("2026年11月21日 10:00", "2026-11-21T10:00:00"),
    ],
)
def test_times_beside_them(text: str, right: str) -> None:
    assert iso_date(text) == right


@pytest.mark.parametrize(
    "text",
    ["更新：2026年11月21日", "수정 2026년 11월 21일", "Güncellendi: 21 Kasım 2026", "Aktualizováno 21. listopadu 2026"],
)
def test_the_date_of_a_change_is_no_publication(text: str) -> None:
    assert (line_dates(text).published, line_dates(text).modified) == ("", "2026-11-21")


@pytest.mark.parametrize(
    "text",
    [
        "发布时间：2026年11月21日 10:00",
        "投稿日：2026年11月21日",
        "입력 2026.11.21 10:00",
        "Yayın tarihi: 21 Kasım 2026",
    ],
)
def test_labels_of_languages(text: str) -> None:
    assert line_dates(text).published == "2026-11-21"
