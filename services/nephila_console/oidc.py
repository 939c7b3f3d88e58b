"""Login by an OpenID Connect provider: authorization code with PKCE, and an ID token that is verified.

Nothing is kept between the two requests of a login: state, nonce and code verifier are made from the key of this
process and one random value, which the browser keeps in a cookie for `LOGIN_S`. So no client can fill a memory, and a
callback that another browser began is refused. Keys of the provider are kept for `KEPT_S`, and read again for an
unknown key.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UNREADABLE, UsageError
from nephila.kernel.runtime.extras import install_line
from nephila_control.access.access_file import Oidc, claim_groups, granted
from nephila_control.access.caller import Caller

from nephila_console.gate import Refused, Seal

LOGIN_S: Final = 600.0
"""Between the first request of a login and its last."""
KEPT_S: Final = 3600.0
AGAIN_S: Final = 60.0
"""Keys are read again for an unknown key after this at the earliest."""
ANSWER_S: Final = 10.0
MAX_ANSWER: Final = 1 << 20
LEEWAY_S: Final = 60
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key: one with the client's secret, or none, is refused."""
MISSING: Final = f"login by OIDC needs a library: {install_line('oidc')}"


class Provider(NamedTuple):
    """The provider publishes these facts about itself."""

    authorize: str
    token: str
    keys: str
    secret_in_body: bool


class OidcLogin:
    def __init__(self, config: Oidc, seal: Seal, clock: Clock) -> None:
        """Raises `UsageError` without the library, or without the file of the secret."""
        try:
            import joserfc  # noqa: F401 - what is missing is named at the start
        except ImportError:
            raise UsageError(MISSING) from None
        self._config = config
        self._seal = seal
        self._clock = clock
        self._secret = _secret(config.client_secret_file)
        self._provider: tuple[Provider, float] | None = None
        self._keys: tuple[Any, float] | None = None
        self.callback = f"{config.public_url.rstrip('/')}/console/oidc/callback"

    # ---- the way there

    async def begin(self) -> tuple[str, str]:
        """Returns (URL of the provider, value of the cookie). Raises `Refused`."""
        provider = await self._known_provider()
        cookie = f"{int(self._clock.now())}.{secrets.token_urlsafe(24)}"
        query = {
            "response_type": "code",
            "client_id": self._config.client_id,
            "redirect_uri": self.callback,
            "scope": " ".join(self._config.scopes),
            "state": self._seal.mark(f"state {cookie}"),
            "nonce": self._seal.mark(f"nonce {cookie}"),
            "code_challenge": _challenge(self._verifier(cookie)),
            "code_challenge_method": "S256",
        }
        return f"{provider.authorize}{'&' if '?' in provider.authorize else '?'}{urlencode(query)}", cookie

    def _verifier(self, cookie: str) -> str:
        return self._seal.mark(f"verifier 1 {cookie}") + self._seal.mark(f"verifier 2 {cookie}")

    # ---- and back

    async def finish(self, query: Mapping[str, str], cookie: str) -> Caller:
        """Returns the user who has logged in. Raises `Refused`."""
        began = cookie.partition(".")[0]
        fresh = began.isdecimal() and len(began) < 12 and 0 <= self._clock.now() - int(began) + 1 <= LOGIN_S
        if not fresh or not self._seal.holds(f"state {cookie}", query.get("state", "")):
            raise Refused(403, "this login was begun in another browser, or too long ago; begin again")
        if error := query.get("error", ""):
            raise Refused(
                403, f"the provider refused the login: {error[:100]} {query.get('error_description', '')[:300]}"
            )
        claims = await self._claims(await self._id_token(query.get("code", ""), cookie))
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), self._seal.mark(f"nonce {cookie}").encode()):
            raise Refused(403, "the provider's answer belongs to another login; begin again")
        name = self._name(claims)
        caller = granted(name, claim_groups(claims, self._config.groups_claim), self._config.grants)
        if caller is None:
            raise Refused(403, f"{name} has logged in, and no grant of the access file is for this user")
        return caller

    def _name(self, claims: Mapping[str, Any]) -> str:
        """An unverified mail address may be another person's, so it does not name the user."""
        claim = self._config.user_claim
        value = claims.get(claim)
        if claim == "email" and claims.get("email_verified") is False:
            value = None
        return (value if isinstance(value, str) and value else str(claims["sub"]))[:200]

    async def _id_token(self, code: str, cookie: str) -> str:
        provider = await self._known_provider()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.callback,
            "client_id": self._config.client_id,
            "code_verifier": self._verifier(cookie),
        }
        headers = {}
        if self._secret and provider.secret_in_body:
            form["client_secret"] = self._secret
        elif self._secret:
            pair = f"{quote(self._config.client_id, safe='')}:{quote(self._secret, safe='')}".encode()
            headers["authorization"] = f"Basic {b64encode(pair).decode()}"
        answer = await _ask("POST", provider.token, form, headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise Refused(403, "the provider has not confirmed the login; begin again")
        return token

    async def _claims(self, token: str) -> dict[str, Any]:
        """Verifies that the ID token comes from this provider for this client. Raises `Refused`."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        for fresh in (False, True):
            try:
                id_token = jwt.decode(token, await self._key_set(fresh=fresh), algorithms=list(ALGORITHMS))
                break
            except (JoseError, ValueError) as error:
                if fresh:
                    raise Refused(403, f"the provider's ID token is not valid ({type(error).__name__})") from None
        registry = jwt.JWTClaimsRegistry(
            now=lambda: int(self._clock.now()),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self._config.issuer},
            aud={"essential": True, "value": self._config.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        )
        try:
            registry.validate(id_token.claims)
        except (JoseError, ValueError, TypeError) as error:
            raise Refused(403, f"the provider's ID token is not valid ({str(error)[:200]})") from None
        audience = id_token.claims["aud"]
        several = isinstance(audience, list) and len(audience) > 1
        if (several or "azp" in id_token.claims) and id_token.claims.get("azp") != self._config.client_id:
            raise Refused(403, "the provider's ID token was made for another client")
        return dict(id_token.claims)

    # ---- what the provider says

    async def _known_provider(self) -> Provider:
        now = self._clock.monotonic()
        if self._provider is None or now - self._provider[1] > KEPT_S:
            issuer = self._config.issuer
            metadata = await _ask("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            if metadata.get("issuer") != issuer:
                raise Refused(502, "the provider says that it is another issuer than oidc.issuer of the access file")
            methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
            self._provider = (
                Provider(
                    _place(metadata, "authorization_endpoint"),
                    _place(metadata, "token_endpoint"),
                    _place(metadata, "jwks_uri"),
                    "client_secret_basic" not in methods,
                ),
                now,
            )
        return self._provider[0]

    async def _key_set(self, *, fresh: bool) -> Any:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        now = self._clock.monotonic()
        if self._keys is None or now - self._keys[1] > (AGAIN_S if fresh else KEPT_S):
            document = await _ask("GET", (await self._known_provider()).keys)
            try:
                self._keys = KeySet.import_key_set(document), now  # type: ignore[arg-type]
            except (JoseError, ValueError, KeyError, TypeError):
                raise Refused(502, "the provider's keys cannot be read") from None
        return self._keys[0]


def _secret(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read oidc.client_secret_file {path}: {error}") from None


def _challenge(verifier: str) -> str:
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")


def _place(metadata: Mapping[str, Any], name: str) -> str:
    url = metadata.get(name)
    parts = urlsplit(url if isinstance(url, str) else "")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")):
        raise Refused(502, f"the provider's {name} is no https URL")
    return str(url)


async def _ask(
    method: str, url: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
) -> dict[str, Any]:
    """Returns the JSON object of the answer. Raises `Refused`."""
    try:
        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
            session.request(method, url, data=form, headers=headers, allow_redirects=False) as answer,
        ):
            status, body = answer.status, bytearray()
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > MAX_ANSWER:
                    raise Refused(502, "the login provider's answer is too long")
        document = msgspec.json.decode(bytes(body)) if status == 200 else None
    except (aiohttp.ClientError, TimeoutError, OSError):
        raise Refused(502, "the login provider cannot be reached; try again, or log in with a token") from None
    except UNREADABLE:
        document = None
    if not isinstance(document, dict):
        raise Refused(502 if status >= 500 else 403, f"the login provider answers {status}; begin again")
    return document
