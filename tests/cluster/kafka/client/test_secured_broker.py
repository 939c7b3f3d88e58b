"""TLS and SASL against a real secured broker: every client of the project connects, and each fault is one line."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest
from nephila.kernel.messages import Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import NotReadyError, UsageError
from nephila.kernel.topics import SEEDS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.config import checked
from nephila_control.cluster.dead_letters import scan

from tests.cluster.kafka.client.secured_broker import PASSWORD, token
from tests.waits import until

pytestmark = pytest.mark.full


async def passes_a_message(config, count: int = 1) -> None:
    """Topics, a producer, a group, compacted topics and the log reader of one member."""
    await admin.apply(checked(config, "test"))
    got: list[str] = []
    bus = KafkaBus(config, SystemClock())
    bus.subscribe(SEEDS, "reader", lambda d: (got.append(d.message.url), d.ack()), credits=99)
    await bus.start()
    try:
        for number in range(count):
            await bus.publish(SEEDS, number % 4, Seed("j", str(number)))
        await until(lambda: len(got) == count, 60.0)
        assert (await bus.bounds(SEEDS, [0]))[0] == (0, 1)
        assert await bus.read_up_to("reader", SEEDS, {3: 1}) <= {3}
    finally:
        await bus.close()
    assert [one async for one in scan(config)] == []
    await admin.delete(config)


@pytest.mark.parametrize(
    ("listener", "settings"),
    [
        ("TLS", {}),
        ("MUTUAL", {}),
        ("LOGIN", {"sasl_mechanism": "PLAIN"}),
        ("LOGIN", {"sasl_mechanism": "SCRAM-SHA-256"}),
        ("LOGIN", {"sasl_mechanism": "SCRAM-SHA-512"}),
        ("CLEAR", {}),
        ("TOKEN", {}),
    ],
)
async def test_every_client_connects(secured, listener, settings):
    """With each security protocol and mechanism."""
    await passes_a_message(secured.config(listener, **settings))


async def test_a_name_that_is_not_checked(secured):
    """The bootstrap name is not in the certificate; the issuer is checked all the same."""
    await passes_a_message(secured.config("TLS", "localhost", ssl_check_hostname=False))
    other = secured.config("TLS", "localhost", ssl_check_hostname=False, ssl_ca_file=str(secured.other_ca))
    with pytest.raises(NotReadyError, match="is not trusted by"):
        await admin.existing(other)


@pytest.mark.parametrize(
    ("listener", "host", "settings", "says"),
    [
        ("TLS", "127.0.0.1", {"ssl_ca_file": "OTHER"}, "is not trusted by OTHER"),
        ("TLS", "127.0.0.1", {"ssl_ca_file": ""}, "is not trusted by the authorities of the system"),
        ("TLS", "localhost", {}, "the certificate of localhost:PORT is for another host"),
        ("MUTUAL", "127.0.0.1", {"ssl_certificate_file": "", "ssl_key_file": ""}, "set ssl_certificate_file"),
        ("MUTUAL", "127.0.0.1", {"ssl_certificate_file": "STRANGER", "ssl_key_file": "KEY"}, "ssl_certificate_file"),
        ("LOGIN", "127.0.0.1", {"sasl_password": "wrong"}, "check sasl_username 'alice' and sasl_password"),
        (
            "LOGIN",
            "127.0.0.1",
            {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "bob"},
            "check sasl_username 'bob'",
        ),
        ("CLEAR", "127.0.0.1", {"sasl_mechanism": "SCRAM-SHA-256"}, "has no SCRAM-SHA-256: set sasl_mechanism"),
        (
            "TLS",
            "127.0.0.1",
            {"security_protocol": "PLAINTEXT", "ssl_ca_file": ""},
            "speaks TLS: set security_protocol",
        ),
        ("PLAINTEXT", "127.0.0.1", {"security_protocol": "SSL", "ssl_ca_file": "CA"}, "does not speak TLS"),
        (
            "LOGIN",
            "127.0.0.1",
            {"security_protocol": "SSL", "sasl_mechanism": "", "sasl_username": "", "sasl_password": ""},
            "if it requires SASL, set security_protocol SASL_SSL",
        ),
        (
            "TLS",
            "127.0.0.1",
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "a", "sasl_password": "b"},
            "does not use SASL: name another listener",
        ),
        (
            "TOKEN",
            "127.0.0.1",
            {"sasl_oauth_token_file": "nowhere"},
            "no token in sasl_oauth_token_file nowhere: No such",
        ),
        ("PLAINTEXT", "no-such-host.invalid", {}, "the name no-such-host.invalid is not known"),
    ],
)
async def test_a_fault_is_one_line_with_its_remedy(secured, listener, host, settings, says):
    """Wrong authority, name, certificate, credentials, mechanism, protocol, token."""
    files = {
        "OTHER": str(secured.other_ca),
        "CA": str(secured.ca),
        "STRANGER": str(secured.stranger_certificate),
        "KEY": str(secured.stranger_key),
    }
    config = secured.config(listener, host, **{key: files.get(value, value) for key, value in settings.items()})
    with pytest.raises(NotReadyError) as caught:
        await admin.existing(checked(config, "test"))
    line = str(caught.value)
    assert says.replace("PORT", str(secured.broker.ports[listener])).replace("OTHER", files["OTHER"]) in line
    assert line.startswith("no connection to Kafka: ")
    assert "\n" not in line
    assert PASSWORD not in line


async def test_a_bus_reports_the_fault_and_starts_later(secured):
    """A service is not ready with a wrong password, and becomes ready when the secret is corrected."""
    config = secured.config("LOGIN")
    await admin.apply(config)
    wrong = KafkaBus(msgspec.structs.replace(config, sasl_password=PASSWORD[1:]), SystemClock())
    with pytest.raises(NotReadyError, match="check sasl_username 'alice'"):
        await wrong.start()
    await wrong.close()
    await passes_a_message(config)


async def test_an_expired_token_is_replaced(secured):
    """The broker ends connections whose token expires. The file has another one by then, and no message is lost."""
    config = secured.config("TOKEN")
    path = secured.folder / "token"
    await admin.apply(config)
    path.write_text(token(3.0))
    got: list[str] = []
    bus = KafkaBus(config, SystemClock())
    bus.subscribe(SEEDS, "reader", lambda d: (got.append(d.message.url), d.ack()), credits=99)
    await bus.start()
    try:
        end, number = time.monotonic() + 9.0, 0
        while time.monotonic() < end:
            path.write_text(token(3.0))
            await bus.publish(SEEDS, number % 4, Seed("j", str(number)))
            number += 1
            await asyncio.sleep(0.1)
        await until(lambda: {str(one) for one in range(number)} <= set(got), 60.0)
    finally:
        await bus.close()


def test_a_broken_file_is_one_line(secured, tmp_path):
    """A missing authority, a key of another certificate, text instead of PEM."""
    from nephila_cluster.kafka.client.security import connection_options

    text = tmp_path / "text.pem"
    text.write_text("hello")
    faults = [
        ({"ssl_ca_file": "nowhere.pem"}, "ssl_ca_file nowhere.pem: No such file"),
        ({"ssl_ca_file": str(text)}, "holds no PEM certificate"),
        ({"ssl_key_file": str(secured.stranger_key)}, "both have to be PEM and to belong together"),
    ]
    for settings, says in faults:
        with pytest.raises(UsageError, match=says):
            connection_options(secured.config("MUTUAL", **settings))
