"""Certificates of the gateway: a CA made at start, and a TLS context for each host, signed by it.

The key of the CA exists in memory only. All hosts share one leaf key, so a new host costs one signature (0.2 ms), and
the browser recognises every certificate of the gateway by the hash of that one key.
"""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from base64 import b64encode
from collections import OrderedDict
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

MAX_CONTEXTS = 1000
"""TLS contexts at once, about 20 KB each; the one used least recently is dropped."""
_LIFE = timedelta(days=90)
_SKEW = timedelta(days=2)
_LONGEST_NAME = 64
"""X.509 limits a common name to 64 characters; the subject alternative name is the one that clients check."""


class CertificateAuthority:
    """Issues server certificates. Must be used from one thread."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._ca_key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_pem = self._leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Nephila browser gateway")])
        self._ca = (
            self._builder(self._name, self._ca_key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._ca_key, hashes.SHA256())
        )
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()

    def __len__(self) -> int:
        return len(self._contexts)

    @property
    def spki_hash(self) -> str:
        """Base64 of the SHA-256 of the leaf key's SubjectPublicKeyInfo, which every certificate of a host contains."""
        spki = self._leaf_key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return b64encode(sha256(spki).digest()).decode("ascii")

    @property
    def pem(self) -> str:
        """The certificate of the CA."""
        return self._ca.public_bytes(Encoding.PEM).decode("ascii")

    def context(self, host: str) -> ssl.SSLContext:
        """The server context for a host name or an address; raises `ValueError` for a text that is neither."""
        context = self._contexts.get(host)
        if context is None:
            context = self._contexts[host] = self._make(host)
            if len(self._contexts) > MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        else:
            self._contexts.move_to_end(host)
        return context

    def _make(self, host: str) -> ssl.SSLContext:
        certificate = self._sign(host).public_bytes(Encoding.PEM)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        # The ssl module loads certificates from files only.
        with tempfile.TemporaryDirectory(prefix="nephila-gateway-") as folder:
            path = Path(folder, "leaf.pem")
            path.write_bytes(self._leaf_pem + certificate)
            context.load_cert_chain(path)
        return context

    def _sign(self, host: str) -> x509.Certificate:
        alternative: x509.GeneralName
        try:
            alternative = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            alternative = x509.DNSName(host)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:_LONGEST_NAME])])
        return (
            self._builder(name, self._leaf_key)
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
            .sign(self._ca_key, hashes.SHA256())
        )

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _SKEW)
            .not_valid_after(self._now + _LIFE)
        )
