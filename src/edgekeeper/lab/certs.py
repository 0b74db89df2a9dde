"""Certificates for the lab: one authority a drill, as many leaves as it asks for, for ``dns.example`` unless another name is given."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from edgekeeper.config.kinds import is_address

SERVER_NAME = "dns.example"
_DAY = dt.timedelta(days=1)
_SIGNS = x509.KeyUsage(
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


def _general_name(name: str) -> x509.GeneralName:
    return x509.IPAddress(ipaddress.ip_address(name)) if is_address(name) else x509.DNSName(name)


class Authority:
    """A certificate authority that lives as long as the drill; ``ca.crt`` is what the client trusts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "drill authority")])
        self._leaves = 0
        builder = self._builder(self._name, self._key.public_key(), self._name)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_SIGNS, critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name_of: str = SERVER_NAME) -> Path:
        """A folder with a fresh ``tls.crt`` and ``tls.key`` for one name."""
        self._leaves += 1
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name_of)])
        builder = self._builder(name, key.public_key(), self._name)
        builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(name_of)]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())  # Python 3.13 insists on it
        certificate = builder.add_extension(issuer, critical=False).sign(self._key, hashes.SHA256())
        folder = self._folder / f"leaf-{self._leaves}"
        folder.mkdir(mode=0o700)
        (folder / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_file = folder / "tls.key"
        key_file.touch(mode=0o600)
        key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        return folder

    def mount(self) -> Path:
        """A folder laid out as Kubernetes mounts a Secret: files that point through ``..data``; see ``rotate``."""
        folder = self._folder / "secret"
        folder.mkdir(mode=0o700)
        (folder / "..data").symlink_to(self.issue())
        for name in ("tls.crt", "tls.key"):
            (folder / name).symlink_to(f"..data/{name}")
        return folder

    def rotate(self, folder: Path) -> None:
        """Swap certificate and key together, by one rename of ``..data``."""
        new = folder / "..new"
        new.symlink_to(self.issue())
        os.replace(new, folder / "..data")  # noqa: PTH105 - Path.replace would follow nothing, but says less

    def _builder(self, subject: x509.Name, public: ec.EllipticCurvePublicKey, issuer: x509.Name) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)  # noqa: TID251 - a certificate needs the wall clock, and no decision hangs on it
        return x509.CertificateBuilder(
            issuer_name=issuer,
            subject_name=subject,
            public_key=public,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - _DAY,
            not_valid_after=now + 90 * _DAY,
        )
