"""A secret whose file is replaced while a program runs counts at the next connection, without a restart."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
import trustme
from nephila.kernel.runtime import config
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.secret_files import current
from nephila.storage.faults import StoreLost
from nephila_cluster.kafka.client.security import connection_options, renew_credentials
from nephila_cluster.kafka.config import KafkaConfig
from nephila_control.access.authority import Authority, administrator
from nephila_control.http.tokens import present_token, read_token
from nephila_stores.postgres import link


def variable(monkeypatch: pytest.MonkeyPatch, file: Path, name: str = "SOME_SECRET") -> str:
    monkeypatch.setenv(f"{name}_FILE", str(file))
    return config.secret_variable(name)


def test_a_secret_is_the_present_content_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text("first of this test\n")
    secret = variable(monkeypatch, file)
    assert current(secret) == "first of this test"
    file.write_text("second\n")
    assert current(secret) == "second"
    file.write_text("")
    assert current(secret) == "second", "a file that is being replaced counts as unchanged"
    file.unlink()
    assert current(secret) == "second"
    assert current("a secret of no file") == "a secret of no file"


def test_a_database_is_connected_to_with_the_rotated_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://u:old@db.test/x")
    url = variable(monkeypatch, file)
    passwords: list[str] = []

    def refuse(_: str, **settings: str) -> None:
        passwords.append(settings["password"])
        raise psycopg.OperationalError('FATAL:  password authentication failed for user "u"')

    monkeypatch.setattr(link.psycopg, "connect", refuse)
    for text in ("old", "new"):
        file.write_text(f"postgresql://u:{text}@db.test/x")
        with pytest.raises(UserError, match="password authentication failed"):
            link.connect(url)
    assert passwords == ["old", "new"]


def test_a_password_in_a_file_of_its_own_is_read_at_each_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URL has none, as in the chart; one in the URL comes first. A file that is away now is a lost connection."""
    file = tmp_path / "password"
    monkeypatch.setenv("PGPASSWORD_FILE", str(file))
    parts = {"user": "u", "host": "db.test", "dbname": "x"}
    for text in ("old", "new"):
        file.write_text(f"{text}\n")
        assert link.parameters("postgresql://u@db.test/x") == {**parts, "password": text}
    assert link.parameters("postgresql://u:own@db.test/x") == {**parts, "password": "own"}
    file.unlink()
    with pytest.raises(StoreLost, match="PGPASSWORD_FILE"):
        link.parameters("postgresql://u@db.test/x")


def test_kafka_gets_the_rotated_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text("kafka one")
    password = variable(monkeypatch, file)
    settings = KafkaConfig(
        bootstrap="b:1",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="u",
        sasl_password=password,
    )
    options = connection_options(settings)
    for text in ("kafka one", "kafka two", "kafka three"):
        file.write_text(text)
        connection = SimpleNamespace(_sasl_plain_password=options["sasl_plain_password"], _ssl_context=None)
        renew_credentials(connection)
        assert connection._sasl_plain_password == text
        options = connection_options(settings)


def test_a_rotated_token_of_the_api_is_the_only_one_that_counts(tmp_path: Path) -> None:
    """Server and client read the same file; a file without a proper token changes nothing."""
    file = tmp_path / "token"
    old, new = "a" * 32, "b" * 32
    file.write_text(f"{old}\n")
    token = read_token(str(file), "api.token_file")
    authority = Authority(None, administrator(token))  # type: ignore[arg-type]
    assert authority.caller(old) is not None
    file.write_text(f"{new}\n")
    assert present_token(token) == new
    assert authority.caller(old) is None
    assert authority.caller(new) is not None
    file.write_text("short")
    assert authority.caller("short") is None
    assert authority.caller(old) is not None or authority.caller(new) is not None


def test_a_rotated_client_certificate_of_kafka_is_read_by_the_next_connection(tmp_path: Path) -> None:
    """A key that does not belong to it, as in the middle of a rotation, changes nothing until both belong together."""
    authority, certificate, key = trustme.CA(), tmp_path / "tls.crt", tmp_path / "tls.key"

    def issue(*, with_key: bool = True) -> None:
        leaf = authority.issue_cert("client.test")
        leaf.cert_chain_pems[0].write_to_path(certificate)
        if with_key:
            leaf.private_key_pem.write_to_path(key)

    issue()
    settings = KafkaConfig(
        bootstrap="b:1", security_protocol="SSL", ssl_certificate_file=str(certificate), ssl_key_file=str(key)
    )
    context = connection_options(settings)["ssl_context"]
    connection = SimpleNamespace(_sasl_plain_password=None, _ssl_context=context)
    renew_credentials(connection)
    first = context.seen
    issue(with_key=False)
    renew_credentials(connection)
    assert context.seen == first
    issue()
    renew_credentials(connection)
    assert context.seen not in ((), first)
