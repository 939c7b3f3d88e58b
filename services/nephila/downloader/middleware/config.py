"""Settings of the middleware: credentials, cookies, signatures, rates, blocks and the files of users."""

import msgspec


class MiddlewareConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What middleware adds to requests and recognises in responses."""

    cookies: str = ""
    """A file of cookies in Netscape's format, as browsers and curl export it. Each job starts with these cookies
    and keeps those that sites set."""

    secrets: str = ""
    """Directory of the files that `spec.login` of jobs and `auth` may name. Empty: no files are allowed."""

    auth: tuple[str, ...] = ()
    """HTTP authentication: "PREFIX basic USER SECRET" or "PREFIX bearer SECRET". PREFIX is a URL, or a host for all of
    its https URLs; SECRET is env:NEPHILA_SECRET_NAME or file:NAME, a file in `secrets`."""

    throttle: tuple[str, ...] = ()
    """Rates of resources beside the delay of their host: "PREFIX RATE". PREFIX is a host with an optional path, or *
    for each host; RATE is 500KB/s, 10/s, 30/min or 100/h. A host whose rate is reached waits."""

    directory: str = ""
    """Folder of Python files with `on_request`, `on_response` or `on_outcome`, which run with the rights of this
    process. Empty: none."""

    detect_blocks: bool = True
    """Recognise challenges, captchas, ban texts and login pages: such a fetch ends as failed(blocked), and its host is
    paused."""

    signature_key: str = ""
    """PEM file of an Ed25519 key that signs every request (Web Bot Auth, RFC 9421). Empty: requests are not signed."""

    signature_agent: str = ""
    """URL of the directory with the public key, sent and signed as Signature-Agent. Empty: none is sent."""
