"""Numbers and prices in any writing: the right value, or none with the reason; never another number."""

from __future__ import annotations

import pytest
from nephila_rules.runtime.currencies import currency_of
from nephila_rules.runtime.numbers import number, price


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((".99", 0.99), ("$.75", 0.75), (",89 €", 0.89), ("€ ,50", 0.5), ("-.5", -0.5), ("Rs.500", 500), ("No.5", 5)),
        *(("1.2K followers", 1200), ("1.5M views", 1_500_000), ("1,5 Mio. €", 1_500_000), ("3 million", 3_000_000)),
        *(("2,3 Mrd.", 2_300_000_000), ("12 тыс. руб.", 12_000), ("3.5万", 35_000), ("1億円", 100_000_000)),
        *(("2 lakh", 200_000), ("$5m", 5_000_000), ("1.15M", 1_150_000), ("10 k€", 10_000), ("100+", 100)),
        *(("85 m²", 85), ("4.500 m²", 4500), ("12,5 m³", 12.5), ("85㎡", 85), ("85 m2", 85), ("85 m", 85), ("5 km", 5)),
        *(("16 KB", 16), ("3×10⁸", 3e8), ("1.5 x 10⁻³", 1.5e-3), ("2½", 2.5), ("¾", 0.75), ("H₂O 5", 5)),
        *(("–5 °C", -5), ("−5", -5), ("$-5", -5), ("€ -5,00", -5), ("Total: -12", -12), ("12.50-", -12.5)),
        *(("Price - 5", 5), ("A-5", 5), ("19,-", 19), ("19.–", 19), ("off-$5", 5)),
        *(("１２，３４５", 12_345), ("１２．５", 12.5), ("٣٫٥", 3.5), ("۱۲٬۳۴۵", 12_345), ("£12·50", 12.5)),
    ],
)
def test_numbers_of_every_writing(text: str, value: float) -> None:
    assert number(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["10²", "19⁹⁹", "5 mil", "85m", "⅓", "±5", "10–20", "1.2K–3K", "512 B", "5-", "2 Mio. 300", "5 billones"]
)
def test_a_text_that_may_be_another_number_has_no_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        number(text)


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        *(("$49.95 AUD", 49.95, "AUD"), ("$ 100 MXN", 100, "MXN"), ("kr 1.299,00 DKK", 1299, "DKK")),
        *(("¥100 CNY", 100, "CNY"), ("C $29.99", 29.99, "CAD"), ("NZ $12", 12, "NZD"), ("US $5", 5, "USD")),
        *(
            ("SGD$ 5", 5, "SGD"),
            ("1.50 $CA", 1.5, "CAD"),
            ("5 $ US", 5, "USD"),
            ("￥199", 199, "JPY"),
            ("＄5", 5, "USD"),
        ),
        *(("19⁹⁹ €", 19.99, "EUR"), ("Try it for $5", 5, "USD"), ("TRY 5", 5, "TRY"), ("5 usd", 5, "USD")),
        *(("1,5 Mio. €", 1_500_000, "EUR"), ("Rp 15 ribu", 15_000, "IDR"), ("5 euros", 5, "EUR")),
    ],
)
def test_the_code_or_the_letters_decide_the_currency(text: str, amount: float, currency: str) -> None:
    assert price(text) == {"amount": pytest.approx(amount), "currency": currency}


def test_two_codes_are_no_currency() -> None:
    with pytest.raises(ValueError, match="CAD, USD"):
        currency_of("CAD 5 USD")
