"""A real broker with a listener for each way to connect: TLS, client certificates, passwords, tokens."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives import serialization
from nephila_cluster.kafka.config import KafkaConfig

from tests.contracts.buses import config_for
from tools.kafka_broker import Broker

USER, PASSWORD = "alice", "al=ice secret"
LISTENERS = {"TLS": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_SSL", "CLEAR": "SASL_PLAINTEXT", "TOKEN": "SASL_SSL"}
PROPERTIES = """ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={ca}
listener.name.mutual.ssl.client.auth=required
listener.name.login.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.login.plain.sasl.jaas.config={plain}
listener.name.login.scram-sha-256.sasl.jaas.config={scram}
listener.name.login.scram-sha-512.sasl.jaas.config={scram}
listener.name.clear.sasl.enabled.mechanisms=PLAIN
listener.name.clear.plain.sasl.jaas.config={plain}
listener.name.token.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.token.oauthbearer.sasl.jaas.config={token}
listener.name.token.connections.max.reauth.ms=3600000
"""
_MODULES = "org.apache.kafka.common.security"
PLAIN = f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
SCRAM = f"{_MODULES}.scram.ScramLoginModule required;"
TOKEN = f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'


def _pkcs8(key: bytes) -> bytes:
    """A key as Kafka reads it."""
    loaded = serialization.load_pem_private_key(key, None)
    form = serialization.PrivateFormat.PKCS8
    return loaded.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def token(life_s: float = 3600.0, subject: str = USER) -> str:
    """A JSON web token without signature, which the listener TOKEN accepts."""

    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    now = time.time()
    return f"{part({'alg': 'none'})}.{part({'sub': subject, 'iat': now, 'exp': now + life_s})}."


class SecuredBroker:
    """The broker, its authority, and the files of a client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.ca = folder / "ca.pem"
        self.authority.cert_pem.write_to_path(str(self.ca))
        self.certificate, self.key = self.issue("client.test", self.authority)
        stranger = trustme.CA()
        self.other_ca = folder / "other-ca.pem"
        stranger.cert_pem.write_to_path(str(self.other_ca))
        self.stranger_certificate, self.stranger_key = self.issue("stranger.test", stranger)
        own = self.authority.issue_cert("127.0.0.1")
        keystore = folder / "keystore.pem"
        keystore.write_bytes(_pkcs8(own.private_key_pem.bytes()) + b"".join(pem.bytes() for pem in own.cert_chain_pems))
        properties = PROPERTIES.format(keystore=keystore, ca=self.ca, plain=PLAIN, scram=SCRAM, token=TOKEN)
        self.broker = Broker(folder / "broker", listeners=LISTENERS, properties=properties)

    def issue(self, name: str, authority: trustme.CA) -> tuple[Path, Path]:
        """Files of a client certificate and of its key."""
        issued = authority.issue_cert(name)
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        issued.cert_chain_pems[0].write_to_path(str(certificate))
        issued.private_key_pem.write_to_path(str(key))
        return certificate, key

    def start(self) -> SecuredBroker:
        """Start it, with one user for SCRAM."""
        self.broker.start()
        for size in (256, 512):  # one request cannot set both
            credential = f"SCRAM-SHA-{size}=[password={PASSWORD}]"
            self.broker.configure("--add-config", credential, "--entity-type", "users", "--entity-name", USER)
        return self

    def config(self, listener: str, host: str = "127.0.0.1", **settings: Any) -> KafkaConfig:
        """Settings of a client of one listener, with topics of its own; other settings may be given."""
        protocol = {**LISTENERS, "PLAINTEXT": "PLAINTEXT"}[listener]
        values: dict[str, Any] = {
            "bootstrap": f"{host}:{self.broker.ports[listener]}",
            "security_protocol": protocol,
        }
        if protocol.endswith("SSL"):
            values["ssl_ca_file"] = str(self.ca)
        if listener == "MUTUAL":
            values |= {"ssl_certificate_file": str(self.certificate), "ssl_key_file": str(self.key)}
        if listener in ("LOGIN", "CLEAR"):
            values |= {"sasl_mechanism": "PLAIN", "sasl_username": USER, "sasl_password": PASSWORD}
        if listener == "TOKEN":
            path = self.folder / "token"
            path.write_text(token())
            values |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_file": str(path)}
        # Nothing here is about dead members, and a loaded machine answers heartbeats late.
        return config_for(self.broker, **{**values, "session_s": 10.0, **settings})
