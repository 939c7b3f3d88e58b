"""A database over TLS, by the parameters of libpq in its URL; the URL and the password from files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from types import SimpleNamespace

import psycopg
import pytest
import trustme
from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.errors import UserError
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer
from nephila_stores.postgres.link import connect

from tools.postgres import PASSWORD, USER, Server

HBA = "hostssl all all 127.0.0.1/32 scram-sha-256\n"
"""Plaintext is refused."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, postgres: Server) -> Iterator[SimpleNamespace]:
    """A server that requires TLS, with a certificate for 127.0.0.1, its authority and another one."""
    folder = tmp_path_factory.mktemp("authorities")
    authority, own, other = folder / "ca.pem", trustme.CA(), folder / "other.pem"
    own.cert_pem.write_to_path(str(authority))
    trustme.CA().cert_pem.write_to_path(str(other))
    server = Server(settings=("ssl=on",))
    try:
        issued = own.issue_cert("127.0.0.1")
        (server.data / "server.crt").write_bytes(issued.cert_chain_pems[0].bytes())
        (server.data / "server.key").write_bytes(issued.private_key_pem.bytes())
        (server.data / "server.key").chmod(0o600)
        (server.data / "pg_hba.conf").write_text(HBA)
        if os.geteuid() == 0:
            for name in ("server.crt", "server.key", "pg_hba.conf"):
                shutil.chown(server.data / name, "nobody", "nogroup")
        server.start()
        yield SimpleNamespace(server=server, authority=authority, other=other)
    finally:
        server.stop()


def encrypted(url: str) -> bool:
    """Whether a connection of the ledger uses TLS."""
    with connect(url) as connection:
        row = connection.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
    assert row is not None
    return bool(row[0])


def test_a_verified_connection(secured, tmp_path):
    """The server is verified by its authority and its name, and the writer opens its tables."""
    url = f"{secured.server.dsn()}?sslmode=verify-full&sslrootcert={secured.authority}"
    assert encrypted(url)
    writer = Writer(StorageConfig(directory=tmp_path, store=url, fsync=False))
    writer.open()
    writer.close()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM pages").fetchone() == (0,)


def test_the_url_and_the_password_from_files(secured, tmp_path, monkeypatch):
    """As secrets of a cluster are mounted: the URL in one file, or a password file of libpq beside a URL without."""
    url = tmp_path / "url"
    url.write_text(f"{secured.server.dsn()}?sslmode=verify-full&sslrootcert={secured.authority}\n")
    monkeypatch.setenv("NEPHILA_STORAGE__STORE_FILE", str(url))
    config = load(StorageConfig, {"directory": tmp_path}, "here", "storage")
    assert encrypted(config.store)
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"*:*:*:*:{PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGSSLROOTCERT", str(secured.authority))
    assert encrypted(f"postgresql://{USER}@127.0.0.1:{secured.server.port}/postgres?passfile={passwords}")


@pytest.mark.parametrize(
    ("host", "parameters", "says"),
    [
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=OTHER", "set sslrootcert in the URL, or PGSSLROOTCERT"),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=/nowhere.pem", "set sslrootcert in the URL, or PGSSLROOTCERT"),
        ("localhost", "sslmode=verify-full&sslrootcert=CA", "use the name in its certificate, or sslmode=verify-ca"),
        ("127.0.0.1", "sslmode=disable", "the server may require TLS: set sslmode=verify-full"),
    ],
)
def test_a_fault_is_one_line_with_its_remedy(secured, host, parameters, says):
    """Another authority, none, another name, plaintext."""
    parameters = parameters.replace("OTHER", str(secured.other)).replace("CA", str(secured.authority))
    url = secured.server.dsn().replace("127.0.0.1", host)
    with pytest.raises(UserError) as caught:
        connect(f"{url}?{parameters}")
    line = str(caught.value)
    assert says in line
    assert "\n" not in line
    assert PASSWORD not in line


def test_a_server_without_tls(postgres):
    """A URL that requires TLS is not served in plaintext."""
    with pytest.raises(UserError, match="turn TLS on at the server"):
        connect(f"{postgres.dsn()}?sslmode=require")
