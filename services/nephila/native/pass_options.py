"""What the page pass reads of a page: one declaration for the core, the fallback and their callers."""

import msgspec


class PassOptions(msgspec.Struct, frozen=True):
    """Limits and choices of one page pass. `Options` of the core has the same fields and values."""

    max_links: int = 10_000
    max_text_bytes: int = 4_000_000
    main_text: bool = True
    agent: str = "nephila"
    """The name in <meta name> that may have robots directives, beside "robots"."""

    hidden_text: bool = False
    """Text that attributes hide is text."""
