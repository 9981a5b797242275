"""Certificates for scripted servers, good and bad ones, made when they are needed.

    authority = Authority(folder)
    shop = server.origin("shop", tls=authority.context())
    old = server.origin("old", tls=authority.context(days=(-20, -10)))

A client that trusts `authority.path` (OpenSSL reads it from the variable SSL_CERT_FILE) takes the first one, and finds
the second expired.
"""

from __future__ import annotations

import ipaddress
import ssl
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Days = tuple[int, int]
"""From and until when a certificate is valid, in days from now."""

FRESH: Final = (-1, 30)

Key = ec.EllipticCurvePrivateKey


class Authority:
    """A certificate authority of its own; its certificate lies at `path`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("scripted authority")
        self._count = 0
        self.path = folder / "authority.pem"
        certificate = _signed(self._name, self._name, self._key, self._key, FRESH, (), is_ca=True)
        self.path.write_bytes(_pem(certificate))

    def context(
        self,
        *hosts: str,
        days: Days = FRESH,
        is_self_signed: bool = False,
        protocols: tuple[str, ...] = (),
    ) -> ssl.SSLContext:
        """The context of a server that shows a certificate for `hosts` (127.0.0.1 and ::1 where none is given).

        `protocols`: what it offers by ALPN, `h2` say.
        """
        self._count += 1
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(f"scripted server {self._count}")
        issuer, issuer_key = (subject, key) if is_self_signed else (self._name, self._key)
        names = hosts or ("127.0.0.1", "::1")
        certificate = _signed(subject, issuer, key, issuer_key, days, names)
        file = self._folder / f"server-{self._count}.pem"
        file.write_bytes(_pem(certificate) + _key_pem(key))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: Key,
    issuer_key: Key,
    days: Days,
    hosts: tuple[str, ...],
    *,
    is_ca: bool = False,
) -> x509.Certificate:
    now = datetime.now(timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
