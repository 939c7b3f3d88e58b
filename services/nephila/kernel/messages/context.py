"""Generated from proto/nephila/v1/context.proto by tools/protogen.py; do not edit."""

from enum import IntEnum

import msgspec



class Render(IntEnum):
    """Whether a browser renders the page."""

    UNSPECIFIED = 0
    NEVER = 1
    AUTO = 2
    ALWAYS = 3


class Context(msgspec.Struct, array_like=True, gc=False):
    """Context of a fetch, beside its URL. The links of a page inherit it. At most 16 KiB when encoded; null:
    nothing.
    """

    # Name of the session that the fetch belongs to: its cookies and its login.
    session: str = ""
    # Step of a crawl in several steps, such as "list" or "detail".
    stage: str = ""
    # Name of the crawl scheme that the URL belongs to.
    scheme: str = ""
    # Class of proxies that the fetch uses; empty: that of the job.
    proxy_class: str = ""
    # Name of the platform that the URL belongs to, in a crawl by keyword schemes.
    platform: str = ""
    # Name of the keyword group that the search was made for.
    group: str = ""
    # Number of the page in its list, from 1; 0: not a page of a list.
    page: int = 0
    # The route of the URL is a form, which is sent by POST. Links do not inherit it.
    form: bool = False
    # The URL is a requisite (style, picture, script, font, icon): 1 of a page, 2 and more of a style that is
    # one itself. Links do not inherit it. 0: a page.
    requisite: int = 0
    # Text of the link by which the URL was found, and the page on which the link stands: only of a URL that
    # is recorded and not fetched. No page inherits them.
    link_text: str = ""
    found_on: str = ""
