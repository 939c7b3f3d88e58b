"""How clients connect, without a broker: one function for all of them, settings that contradict, tokens."""

from __future__ import annotations

import ast
import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs

import nephila
import pytest
from aiokafka.errors import SaslAuthenticationFailed
from nephila.kernel.runtime.errors import UsageError
from nephila_cluster.kafka.client.security import EndpointToken, connection_options
from nephila_cluster.kafka.config import KafkaConfig, kafka_config

CLIENTS = ("AIOKafkaConsumer", "AIOKafkaProducer", "AIOKafkaAdminClient")
PHRASE = "pass word/"
OAUTH = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauth_client_id": "me",
    "sasl_oauth_client_secret": PHRASE,
}
LOGIN = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "u"}


def test_every_client_uses_the_same_options():
    """A client that is created without them would connect in the clear."""
    calls = [
        (path, ast.unparse(node))
        for path in Path(nephila.__file__).parents[1].glob("nephila*/**/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CLIENTS
    ]
    assert len(calls) >= 7
    for path, call in calls:
        assert "**connection_options(" in call, f"{path}: {call}"
        assert "bootstrap_servers" not in call, f"{path}: {call}"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"security_protocol": "ssl"}, "security_protocol 'ssl' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"ssl_ca_file": "ca.pem"}, "ssl_ca_file has no effect with security_protocol PLAINTEXT; set it to SSL or"),
        ({"sasl_password": "p"}, "sasl_password has no effect with .*set it to SASL_PLAINTEXT or SASL_SSL"),
        ({"ssl_check_hostname": False}, "ssl_check_hostname has no effect"),
        ({"security_protocol": "SSL", "ssl_key_file": "k"}, "ssl_key_file needs ssl_certificate_file"),
        ({"security_protocol": "SASL_SSL"}, "sasl_mechanism '' is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        (LOGIN, "PLAIN needs sasl_password: set it, or sasl_password_file to a file that holds it"),
        ({**LOGIN, "sasl_mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs sasl_oauth_token_file or sasl_oauth_token_url"),
        (
            {**LOGIN, "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_url": "https://a.test/"},
            "OAUTHBEARER needs sasl_oauth_client_id",
        ),
        (
            {**OAUTH, "sasl_oauth_token_url": "http://login.test/token"},
            "sasl_oauth_token_url 'http://login.test/token' would send the client secret unencrypted; use https://",
        ),
        ({**OAUTH, "sasl_oauth_token_url": "http://127.0.0.1.login.test/token"}, "sasl_oauth_token_url .* unencrypted"),
        ({**OAUTH, "sasl_oauth_token_url": "file:///etc/passwd"}, "sasl_oauth_token_url .* is no https:// address"),
    ],
)
def test_settings_that_contradict_are_refused(settings, says):
    """In one line that names the setting."""
    with pytest.raises(UsageError, match=f"^here: {says}"):
        kafka_config(settings, "here")


def test_a_password_is_read_from_a_file(tmp_path, monkeypatch):
    """From a settings file or the environment, without the line end; both at once are refused."""
    path = tmp_path / "password"
    path.write_text(f"{PHRASE}\n")
    found = kafka_config({}, "here", {**LOGIN, "sasl_password_file": str(path)}, "system.yaml")
    assert found.sasl_password == PHRASE
    monkeypatch.setenv("NEPHILA_KAFKA__SASL_PASSWORD_FILE", str(path))
    assert kafka_config({}, "here", LOGIN, "system.yaml").sasl_password == PHRASE
    options = connection_options(kafka_config({}, "here", LOGIN, "system.yaml"))
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("u", PHRASE)
    assert options["ssl_context"].check_hostname
    monkeypatch.setenv("NEPHILA_KAFKA__SASL_PASSWORD", "other")
    with pytest.raises(UsageError, match="environment: sasl_password and sasl_password_file are both set"):
        kafka_config({}, "here", LOGIN, "system.yaml")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.3.2.1:8080", "[::1]:8080"])
def test_a_token_endpoint_of_this_machine_may_be_without_tls(host):
    """As a sidecar that has the credentials of the cloud."""
    config = kafka_config({**OAUTH, "sasl_oauth_token_url": f"http://{host}/token"}, "here")
    assert config.sasl_oauth_token_url.endswith("/token")


@pytest.fixture
def endpoint():
    """A token endpoint: counts requests, answers as told."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            state.requests.append((self.headers["Authorization"], form))
            self.send_response(state.status)
            self.end_headers()
            self.wfile.write(
                state.body or json.dumps({"access_token": f"t{len(state.requests)}", "expires_in": 100}).encode()
            )

        def log_message(self, *words: object) -> None:
            """Nothing on the terminal."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    state = SimpleNamespace(requests=[], status=200, body=b"", url=f"http://127.0.0.1:{server.server_port}/token")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def _provider(endpoint, now: list[float]) -> EndpointToken:
    config = KafkaConfig(
        sasl_oauth_token_url=endpoint.url,
        sasl_oauth_client_id="me/1:2",
        sasl_oauth_client_secret=PHRASE,
        sasl_oauth_scope="kafka",
    )
    return EndpointToken(config, lambda: now[0])


async def test_a_token_is_requested_again_before_it_expires(endpoint):
    """One token serves all connections for four fifths of its life."""
    now = [0.0]
    provider = _provider(endpoint, now)
    assert [await provider.token(), await provider.token()] == ["t1", "t1"]
    now[0] = 79.0
    assert await provider.token() == "t1"
    now[0] = 81.0
    assert await provider.token() == "t2"
    authorization, form = endpoint.requests[0]
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"me%2F1%3A2:pass%20word%2F"
    assert form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b"", "refuses with status 401: check sasl_oauth_client_id"),
        (200, b"<html>", "answers without an access_token"),
        (200, b"[]", "answers without an access_token"),
    ],
)
async def test_an_endpoint_that_fails_is_one_line(endpoint, status, body, says):
    """The line names the endpoint."""
    endpoint.status, endpoint.body = status, body
    with pytest.raises(SaslAuthenticationFailed, match=says):
        await _provider(endpoint, [0.0]).token()
