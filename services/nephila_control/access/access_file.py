"""The access file (`--api-access`, `api.access_file`): tokens with roles, login by OIDC, and by a trusted proxy.

YAML. Secrets may be in files of their own, so that the access file can be read by more people than they.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
import yaml
from nephila.kernel.runtime.errors import UsageError

from nephila_control.access.caller import Caller
from nephila_control.access.roles import Role
from nephila_control.http.tokens import checked_token, read_token

RoleName = Literal["viewer", "editor", "admin"]
Tenant = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=63)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An unknown field is an error."""


class Token(_Part, frozen=True, kw_only=True):
    """A token opens the API and the console."""

    name: Text
    """The log of changes shows this name."""
    role: RoleName
    tenants: tuple[Tenant, ...] = ()
    """The caller sees jobs, rows and rules of these tenants only; an empty list is no limit."""
    token: str = ""
    token_file: str = ""


class Grant(_Part, frozen=True, kw_only=True):
    """What the members of a group may do."""

    group: Text
    """A value of the claim or of the header; `*`: everybody who is logged in."""
    role: RoleName
    tenants: tuple[Tenant, ...] = ()


class Oidc(_Part, frozen=True, kw_only=True):
    """Login by an OpenID Connect provider (authorization code with PKCE)."""

    issuer: Text
    """URL of the provider; /.well-known/openid-configuration is below it."""
    client_id: Text
    client_secret_file: str = ""
    """File with the secret of the client; a public client has none."""
    public_url: Text
    """URL by which browsers reach this server; PUBLIC_URL/console/oidc/callback is registered at the provider."""
    scopes: tuple[Text, ...] = ("openid", "profile", "email")
    user_claim: Text = "email"
    """This claim names the user in the log of changes; `sub` replaces a missing claim."""
    groups_claim: Text = "groups"
    grants: tuple[Grant, ...] = ()
    """The first grant that fits counts. A user without a grant is refused."""


class ProxyHeader(_Part, frozen=True, kw_only=True):
    """A proxy before this server, as oauth2-proxy, logs users in. Its headers count in requests from `proxies` only."""

    proxies: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    """Addresses or networks of the proxies."""
    user: Text = "x-forwarded-email"
    groups: Text = "x-forwarded-groups"
    """Name of the header with the groups, which commas separate."""
    grants: tuple[Grant, ...] = ()
    """The first grant that fits counts. A user without a grant is refused."""


class AccessFile(_Part, frozen=True, kw_only=True):
    """Who may use the API and the console."""

    tokens: tuple[Token, ...] = ()
    oidc: Oidc | None = None
    header: ProxyHeader | None = None


def read_access(path: str, option: str) -> AccessFile:
    """Raises `UsageError` in one line that names the field."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {option} {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{option} {path} is not YAML ({_where(error)})") from None
    try:
        file = msgspec.convert({} if content is None else content, AccessFile)
    except msgspec.ValidationError as error:
        raise UsageError(f"{option} {path}: {error}") from None
    _check(file, f"{option} {path}")
    return file


def _where(error: Exception) -> str:
    """What is wrong and where, without the text itself: it may be a secret."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else type(error).__name__
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _check(file: AccessFile, where: str) -> None:
    for address in file.header.proxies if file.header is not None else ():
        try:
            ipaddress.ip_network(address, strict=False)
        except ValueError:
            raise UsageError(f"{where}: header.proxies: {address!r} is no address and no network") from None
    if (oidc := file.oidc) is not None:
        for name, url in (("issuer", oidc.issuer), ("public_url", oidc.public_url)):
            parts = urlsplit(url)
            local = parts.hostname in ("localhost", "127.0.0.1", "::1")
            if parts.scheme != "https" and not (parts.scheme == "http" and local):
                raise UsageError(f"{where}: oidc.{name}: {url!r} is no https URL")
    names = [token.name for token in file.tokens]
    if double := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{where}: tokens: the name {double!r} is there twice")


def callers(file: AccessFile, where: str) -> list[tuple[str, Caller]]:
    """The tokens of a file, each with its caller. Raises `UsageError`."""
    tokens = []
    for entry in file.tokens:
        location = f"{where}: token {entry.name!r}"
        if bool(entry.token) == bool(entry.token_file):
            raise UsageError(f"{location}: give either token or token_file")
        text = read_token(entry.token_file, location) if entry.token_file else checked_token(entry.token, location)
        tokens.append((text, Caller(entry.name, _role(entry.role), frozenset(entry.tenants))))
    return tokens


def granted(name: str, groups: Iterable[str], grants: Sequence[Grant]) -> Caller | None:
    """Returns None for a user without a grant."""
    held = set(groups)
    for grant in grants:
        if grant.group == "*" or grant.group in held:
            return Caller(name, _role(grant.role), frozenset(grant.tenants))
    return None


def claim_groups(claims: Mapping[str, Any], name: str) -> list[str]:
    """A claim holds a list of groups, or one group as text."""
    claim = claims.get(name, ())
    return (
        [claim]
        if isinstance(claim, str)
        else [group for group in claim if isinstance(group, str)]
        if isinstance(claim, list)
        else []
    )


def _role(name: RoleName) -> Role:
    return Role[name.upper()]
