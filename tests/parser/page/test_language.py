"""The language of a text by its script or its frequent words; none where that is not clear."""

from __future__ import annotations

import pytest
from nephila.parser.page.language import MAX_CHARS, language_of


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("The ship that sank there had sailed from the harbour, and nobody knows why.", "en"),
        ("Das Schiff, das dort gesunken ist, war aus dem Hafen gekommen, und man weiß nicht, warum.", "de"),
        ("Le bateau qui a coulé dans la baie était parti du port, et on ne sait pas pourquoi.", "fr"),
        ("El barco que se hundió en la bahía salió del puerto, pero no se sabe por qué.", "es"),
        ("Statek, który tam zatonął, nie był duży, ale jak to się stało, tego nie wiadomo.", "pl"),
        ("Корабль, который там затонул, вышел из порта, и никто не знает, почему это так.", "ru"),
        ("Корабель, який там затонув, вийшов із порту, але ніхто не знає, що це було.", "uk"),
        ("船はその港から出たが、なぜ沈んだのかは誰も知らない。", "ja"),
        ("那艘船从港口出发，没有人知道它为什么沉没。", "zh"),
        ("배는 항구에서 떠났지만 왜 가라앉았는지 아무도 모른다.", "ko"),
        ("السفينة التي غرقت هناك كانت من هذا الميناء ولا أحد يعرف ما كان في ذلك على أن", "ar"),
        ("Το πλοίο που βυθίστηκε έφυγε από το λιμάνι.", "el"),
        ("", ""),
        ("Login Menu Search 404", ""),
        ("Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt.", ""),
        ("\x00\ufffd" * 1000, ""),
    ],
)
def test_language_of_a_text(text: str, lang: str) -> None:
    assert language_of(text.encode()) == lang


def test_bytes_that_are_no_text_have_none() -> None:
    assert language_of(b"\xff" * 10_000) == ""


def test_only_the_start_is_read() -> None:
    german = " Das Schiff ist aus dem Hafen gekommen und man weiß nicht, warum es nicht mehr da ist."
    assert language_of((german + "x" * MAX_CHARS + " the of and to is in it " * 1000).encode()) == "de"
