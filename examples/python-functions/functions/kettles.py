"""Functions that the rules of this example name as kettles:NAME."""

import re


def litres(value, page):
    """'1,7 l' or '500 ml' as litres."""
    amount = re.search(r"([\d.,]+)\s*(ml|l)\b", value, re.IGNORECASE)
    return amount and float(amount[1].replace(",", ".")) / (1000 if amount[2].lower() == "ml" else 1)


def shelf(value, page):
    """The part of the site that the page is in."""
    return page.url.split("/")[3]
