"""Keywords in a text: whole words, scripts without gaps, and the same result from the core and the fallback."""

from __future__ import annotations

import random

import pytest
from nephila.native import KeywordSet
from nephila.native.fallback.keywords import KeywordSet as Fallback

ALPHABET = "aAbBéÉßΣσДд河南洪水ーｶ한국ไท１Ａ9 \n\t\u3000\u200b.,+-。，·Ⓐ😀"


def found(terms, text, kind=KeywordSet):
    return [terms[number] for number in kind(terms).find(text.encode())]


@pytest.mark.parametrize("kind", [KeywordSet, Fallback])
@pytest.mark.parametrize(
    ("term", "text", "is_there"),
    [
        ("art", "ART is long", True),
        ("art", "party", False),
        ("art", "Die Kunst (art)", True),
        ("flood relief", "Flood\n  relief", True),
        ("flood relief", "flood-relief", False),
        ("河南", "昨日河南发生", True),
        ("河南洪水", "河南\n  洪水", True),
        ("河南洪水", "河南，洪水", False),
        ("ABC", "ＡＢＣ公司", True),
        ("c++", "in C++.", True),
        ("c++", "in C+.", False),
        ("École", "école normale", True),
        ("école", "écoles", False),
        ("洪水", "", False),
    ],
)
def test_what_a_term_matches(kind, term, text, is_there):
    assert bool(found([term], text, kind)) == is_there


@pytest.mark.parametrize("kind", [KeywordSet, Fallback])
def test_overlapping_terms_are_all_found(kind):
    assert found(["河南", "河南洪水", "南洪", "new york", "york"], "河南洪水 in New York", kind) == [
        *("河南", "河南洪水", "南洪", "new york", "york")
    ]


@pytest.mark.parametrize("kind", [KeywordSet, Fallback])
def test_a_blank_term_is_refused(kind):
    with pytest.raises(ValueError, match="is blank"):
        kind(["a", " \u3000\n"])


def test_core_and_fallback_agree():
    """On 3,000 random texts of letters, marks, spaces and scripts."""
    chance = random.Random(17)
    for _ in range(300):
        terms = ["".join(chance.choices(ALPHABET, k=chance.randint(1, 5))) + "a" for _ in range(20)]
        terms += ["".join(chance.choices("河南洪水aA", k=chance.randint(1, 3))) for _ in range(10)]
        one, other = KeywordSet(terms), Fallback(terms)
        for _ in range(10):
            text = "".join(chance.choices(ALPHABET, k=chance.randint(0, 80)))
            assert one.find(text.encode()) == other.find(text.encode()), (terms, text)


def test_invalid_utf8_ends_the_text():
    data = "河南 ".encode() + b"\xff" + "洪水".encode()
    assert KeywordSet(["河南", "洪水"]).find(data) == Fallback(["河南", "洪水"]).find(data) == [0]
