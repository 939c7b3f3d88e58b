"""The login of a CrawlJob as structs."""

import re
from typing import Annotated

from msgspec import Meta, field

from nephila.kernel.documents.browser_schema import LoginStep
from nephila.kernel.documents.field_types import Expression, FileName, Url
from nephila.kernel.documents.struct_reader import Section

_SECRET = re.compile(r"pass|pwd|secret|token|pin$", re.IGNORECASE)


class LoginField(Section):
    """One field of a login form; exactly one of value, env and file is given."""

    name: Annotated[str, Meta(min_length=1, max_length=200, extra={"what": "the name of a field"})]
    """Name of the field in the form."""
    value: Annotated[str, Meta(min_length=1, max_length=4096)] = ""
    """The value. Not for secrets, since documents are stored and shown."""
    env: Annotated[
        str,
        Meta(
            max_length=200,
            pattern="^NEPHILA_SECRET(?:_[A-Z0-9]+)+$",
            extra={"what": "a name like NEPHILA_SECRET_PASSWORD"},
        ),
    ] = ""
    """Environment variable of the downloader that holds the value."""
    file: FileName = ""
    """File below the downloader's directory of secrets that holds the value."""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.value, self.env, self.file))) != 1:
            raise ValueError(f"the field {self.name[:60]!r} needs one of value, env and file")
        if self.value and _SECRET.search(self.name):
            raise ValueError(
                f"{self.name[:60]!r} looks like a secret, which would be stored with the job; give it by env or file",
                "value",
            )


class Login(Section):
    """How to log in to a site before its pages are fetched."""

    url: Url
    """The page with the form. The login holds for all hosts of its site."""
    fields: Annotated[list[LoginField], Meta(min_length=1, max_length=50)]
    """Fields to fill; the others keep the values of the page."""
    check: Expression = ""
    """RE2, found in the page that answers an accepted login. Left out: that page has no password field."""
    lost: Expression = ""
    """RE2, found in pages only when the session is lost. 401 and redirects to url always mean a lost session."""
    steps: Annotated[list[LoginStep], Meta(max_length=50)] = field(default_factory=list)
    """Actions in the rendered page of url, once per session, for a login by scripts. Left out: its form is posted."""

    def __post_init__(self) -> None:
        names = {secret.name for secret in self.fields}
        for step in self.steps:
            if step.field and step.field not in names:
                raise ValueError(f"no field of the login is named {step.field[:60]!r}", "steps")
