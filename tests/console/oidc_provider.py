"""An OpenID Connect provider on this machine: it answers as the standard says, or in one wrong way."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from nephila_control.http.server import tcp_server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

CLIENT = "nephila"
SECRET = "the secret of the client"  # noqa: S105 - of a test


class Provider:
    """Knows one user, who agrees to everything."""

    def __init__(self) -> None:
        self.url = ""
        self.key = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"})
        self.claims: dict[str, Any] = {"sub": "42", "email": "anna@acme.test", "groups": ["crawl-editors"]}
        self.wrong = ""
        """The way in which it lies."""
        self.asked = 0
        self._codes: dict[str, dict[str, str]] = {}

    def agree(self, address: str) -> dict[str, str]:
        """What the user's browser brings back after the user has logged in at this address."""
        query = dict(parse_qsl(urlsplit(address).query))
        assert address.startswith(f"{self.url}/authorize?")
        assert (query["response_type"], query["client_id"]) == ("code", CLIENT)
        assert query["code_challenge_method"] == "S256"
        code = f"code{len(self._codes)}"
        self._codes[code] = query
        return {"code": code, "state": query["state"]}

    async def authorize(self, request: Request) -> Response:
        """The page on which the user logs in; the form leads back."""
        if request.method == "GET":
            return HTMLResponse("<title>Provider</title><form method=post><button>Log in as the user</button></form>")
        brought = urlencode(self.agree(str(request.url)))
        return RedirectResponse(f"{request.query_params['redirect_uri']}?{brought}", 303)

    async def discovery(self, request: Request) -> Response:
        """/.well-known/openid-configuration"""
        self.asked += 1
        issuer = "https://other.test" if self.wrong == "issuer of the document" else self.url
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        return JSONResponse({"issuer": issuer, **{name: f"{self.url}/{path}" for name, path in names.items()}})

    async def keys(self, request: Request) -> Response:
        """The public keys."""
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def token(self, request: Request) -> Response:
        """A code for an ID token, once, to the client that has its verifier."""
        form = dict(parse_qsl((await request.body()).decode()))
        begun = self._codes.pop(form["code"], None)
        pair = base64.b64encode(f"{CLIENT}:{SECRET.replace(' ', '%20')}".encode()).decode()
        challenge = (
            base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        )
        if (
            begun is None
            or request.headers["authorization"] != f"Basic {pair}"
            or (begun["code_challenge"], begun["redirect_uri"]) != (challenge, form["redirect_uri"])
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": self._id_token(begun["nonce"])})

    def _id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce, **self.claims}
        lies: dict[str, dict[str, Any]] = {
            "issuer": {"iss": "https://other.test"},
            "audience": {"aud": "another"},
            "one audience of two": {"aud": [CLIENT, "another"]},
            "other party": {"azp": "another"},
            "expired": {"iat": now - 900, "exp": now - 600},
            "no end": {"exp": None},
            "nonce": {"nonce": "x"},
            "no nonce": {"nonce": None},
        }
        claims = {name: value for name, value in (claims | lies.get(self.wrong, {})).items() if value is not None}
        if self.wrong == "no signature":
            part = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
            return f"{part}.{jwt.encode({'alg': 'RS256'}, claims, self.key).split('.')[1]}."
        if self.wrong == "signed with the secret":
            return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET * 4))
        key = RSAKey.generate_key(2048, {"kid": "k1"}) if self.wrong == "other key" else self.key
        return jwt.encode({"alg": "RS256", "kid": "k1"}, claims, key)


@asynccontextmanager
async def provider() -> AsyncIterator[Provider]:
    """One that listens."""
    found = Provider()
    routes = [
        Route("/.well-known/openid-configuration", found.discovery),
        Route("/authorize", found.authorize, methods=["GET", "POST"]),
        Route("/keys", found.keys),
        Route("/token", found.token, methods=["POST"]),
    ]
    server = tcp_server(Starlette(routes=routes), "127.0.0.1", 0, "-")
    await server.open()
    found.url = f"http://127.0.0.1:{server.port}"
    try:
        yield found
    finally:
        await server.close()
