"""Signature, egress guard and faults of the network, over real sockets; and the file of webhooks."""

from __future__ import annotations

import base64

import pytest
from aiohttp import web
from nephila.kernel.net.egress import EgressError
from nephila.kernel.runtime.errors import UsageError
from nephila_harvest.webhooks.config import read_webhooks
from nephila_harvest.webhooks.message import signature
from nephila_harvest.webhooks.transport import AllowedAddresses, HttpTransport, _without_url

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_signature_is_that_of_the_specification():
    """Its example."""
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    found = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.fixture
async def receiver():
    """The port of a server on 127.0.0.1, and the requests that it got."""
    got = []

    async def hook(request):
        got.append((request.path, await request.read()))
        if request.path == "/moved":
            raise web.HTTPFound("/hook")
        return web.Response(status=429, headers={"Retry-After": "30"}) if request.path == "/slow" else web.Response()

    app = web.Application()
    app.router.add_post("/{path}", hook)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1], got
    await runner.cleanup()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "0x7f.1",
        "2130706433",
        "\uff11\uff12\uff17.0.0.1",
        "127\u30020\u30020\u30021",
    ],
)
async def test_a_private_address_is_refused_by_default(receiver, host):
    """By address, by name, and in the spellings that resolvers accept; nothing is dialled."""
    port, got = receiver
    transport = HttpTransport((), 5.0)
    answer = await transport.post(f"http://{host}:{port}/hook", {}, b"x")
    await transport.close()
    assert answer.status == 0
    assert "loopback" in answer.error or "not a canonical" in answer.error
    assert got == []


async def test_a_listed_network_is_dialled(receiver):
    """Status and Retry-After are read; a redirect is an answer like any other."""
    port, got = receiver
    transport = HttpTransport(("127.0.0.0/8", "::1/128"), 5.0)
    answers = [await transport.post(f"http://localhost:{port}/{path}", {}, b"x") for path in ("hook", "slow", "moved")]
    await transport.close()
    assert [(one.status, one.retry_after_s) for one in answers] == [(200, 0), (429, 30), (302, 0)]
    assert [path for path, _ in got] == ["/hook", "/slow", "/moved"]


async def test_faults_of_the_network_are_one_line():
    """No exception."""
    transport = HttpTransport(("127.0.0.0/8",), 5.0)
    for url in ("http://127.0.0.1:1/hook", "http://127.0.0.1:22/", "http://no-such-name.invalid/"):
        answer = await transport.post(url, {}, b"x")
        assert answer.status == 0
        assert answer.error
        assert "\n" not in answer.error
    await transport.close()


def test_of_several_addresses_only_permitted_ones_remain():
    """A name with a public and a private address."""
    allowed = AllowedAddresses(("10.0.0.0/8",))
    assert allowed.check("a.test", ["127.0.0.1", "10.1.2.3"]) == ["10.1.2.3"]
    assert allowed.check("a.test", ["127.0.0.1", "9.9.9.9"]) == ["9.9.9.9"]
    with pytest.raises(EgressError):
        allowed.check("a.test", ["169.254.169.254"])


GOOD = f"{{name: one, url: 'https://a.test/', secret: {SECRET}}}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "expected one map with the list `webhooks`"),
        ("webhooks: []", "there have to be 1 to 100 webhooks, not 0"),
        ("webhooks: {a: b}", "webhooks is not a list of maps"),
        ("webhooks: [{name: one, url: 'https://a.test/'}]", "one has no secret: set secret_file, or NEPHILA_WEBHOOK_O"),
        ("webhooks: [{name: one, url: 'https://a.test/', secret_file: /no/such}]", "/no/such: No such file"),
        ("webhooks: [{name: one, url: 'https://a.test/', secret: short}]", "the secret of one is not whsec_"),
        ("webhooks: [{name: one, url: 'ftp://a.test/', secret: x}]", "url is no http(s) URL"),
        ("webhooks: [{name: one, url: 'https://u:p@a.test/', secret: x}]", "is no http(s) URL without a user name"),
        ("webhooks: [{name: one, uri: x}]", "unknown setting 'uri'"),
        (f"webhooks: [{GOOD}, {GOOD}]", "there are two webhooks 'one'"),
        (
            f"webhooks: [{GOOD[:-1]}, changes: [same]}}]",
            "changes: 'same' is none of new, changed, moved, gone, returned",
        ),
        (f"webhooks: [{GOOD}]\nallow_addresses: [ten]", "allow_addresses: 'ten' is no network"),
        (f"webhooks: [{GOOD}]\ntimeout_s: -1", "timeout_s must be a number from 0 on"),
        ("webhooks: [", "hooks.yaml"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, text, line):
    """With the place of the mistake, and never the secret."""
    path = tmp_path / "hooks.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_webhooks(path)
    assert line in str(caught.value)
    assert "hooks.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_secrets_of_files_and_of_the_environment(tmp_path, monkeypatch):
    """Neither has to stand in the file of webhooks."""
    (tmp_path / "secret").write_text(SECRET + "\n")
    monkeypatch.setenv("NEPHILA_WEBHOOK_TWO_B_SECRET_FILE", str(tmp_path / "secret"))
    path = tmp_path / "hooks.yaml"
    path.write_text(
        f"webhooks: [{{name: one, url: 'https://a.test/', secret_file: {tmp_path}/secret}},"
        " {name: two-b, url: 'https://b.test/'}]"
    )
    assert [one.name for one in read_webhooks(path).webhooks] == ["one", "two-b"]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/services/T0/s3cret", "http://no-such-name.test/hook/s3cret?k=s3cret"]
)
async def test_an_error_does_not_repeat_the_path_of_a_webhook(url):
    """The path is often the secret."""
    transport = HttpTransport(("127.0.0.0/8",), 5.0)
    answer = await transport.post(url, {}, b"{}")
    assert answer.error
    assert "s3cret" not in answer.error
    await transport.close()


def test_an_error_of_the_file_does_not_repeat_the_url(tmp_path):
    """The place in the file is enough."""
    path = tmp_path / "hooks.yaml"
    path.write_text("webhooks: [{name: one, url: 'https://user@hooks.example/s3cret', secret: " + SECRET + "}]")
    with pytest.raises(UsageError, match=r"webhooks\[0\]: url is no http") as caught:
        read_webhooks(path)
    assert "s3cret" not in str(caught.value)


def test_texts_of_the_http_client_lose_the_url():
    """Some of its errors quote all of it, others the path."""
    url = "https://hooks.example/services/s3cret"
    for text in (f"Cannot connect to {url}", "bad path /services/s3cret here", "hooks.example/services/s3cret"):
        assert "s3cret" not in _without_url(text, url)
    assert _without_url("Cannot connect to hooks.example:443", url) == "Cannot connect to hooks.example:443"
