"""A form that came without a session is kept in the page of the login, and not by the server. Pure.

The server would have to keep texts of strangers. Invariant: such a form changes nothing before its sender has logged in
and sent it again with the token of the new session.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nephila_console import gate

ACTION: Final = "unsent"
"""Field of the login with the address of the form."""
PREFIX: Final = "unsent."
"""Before the names of its fields."""


class UnsentForm(NamedTuple):
    action: str
    fields: dict[str, str]

    @property
    def carried(self) -> dict[str, str]:
        """Fields by which a login carries the form."""
        return {ACTION: self.action, **{PREFIX + name: value for name, value in self.fields.items()}}


def unsent_form(login: dict[str, str]) -> UnsentForm | None:
    """Returns the form that a login carries; None if it carries none."""
    action = login.get(ACTION, "")
    if not action:
        return None
    fields = {name.removeprefix(PREFIX): value for name, value in login.items() if name.startswith(PREFIX)}
    return UnsentForm(gate.local_path(action), without_token(fields))


def without_token(form: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in form.items() if name != "csrf"}
