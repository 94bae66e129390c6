"""Certificates for a sandbox: an authority, a certificate for the brokers on loopback, and one for each user.

All are PEM files, which Kafka's brokers and every client read: ``ca.pem``; ``broker.pem``, the key and its certificate
in one file; ``<user>.pem`` and ``<user>.key``, where the key is encrypted with the user's password.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFE = timedelta(days=1)


def make_certificates(directory: Path, users: Mapping[str, str]) -> None:
    """Write the files described above; ``users`` are names with the passwords of their keys."""
    directory.mkdir(parents=True, exist_ok=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("kafka-sandbox-ca", authority_key, None, authority_key)
    (directory / "ca.pem").write_bytes(_pem(authority))
    broker_key = ec.generate_private_key(ec.SECP256R1())
    broker = _certificate("kafka-sandbox-broker", broker_key, authority, authority_key)
    (directory / "broker.pem").write_bytes(_key(broker_key, None) + _pem(broker))
    for user, password in users.items():
        key = ec.generate_private_key(ec.SECP256R1())
        (directory / f"{user}.pem").write_bytes(_pem(_certificate(user, key, authority, authority_key)))
        (directory / f"{user}.key").write_bytes(_key(key, password))


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    """A certificate, signed by its issuer; without one, that of an authority."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + LIFE)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if issuer is None:
        builder = builder.add_extension(_signs_certificates(), critical=True)
    else:
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _signs_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey, password: str | None) -> bytes:
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
