"""Pairs that dnsdist would die of at its start."""

from __future__ import annotations

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from edgekeeper.engines.dnsdist.certificates import refusal

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)


def issue(name, issuer=None, issuer_key=None, begins=-10, ends=10):
    """A PEM certificate and its key, valid some days around NOW."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    from_whom = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer or name)])
    built = x509.CertificateBuilder(from_whom, subject, key.public_key(), 1, NOW + dt.timedelta(begins), NOW + dt.timedelta(ends))
    return built.sign(issuer_key or key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), key


def write(folder, certificates, key, password=None):
    chain, file = folder / "tls.crt", folder / "tls.key"
    chain.write_bytes(b"".join(certificates))
    sealing = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealing))
    return str(chain), str(file)


def test_a_chain_in_order_with_its_key_is_good(tmp_path):
    root, root_key = issue("root.example")
    leaf, key = issue("edge.example", "root.example", root_key)
    assert refusal(*write(tmp_path, [leaf, root], key), NOW.timestamp()) is None


@pytest.mark.parametrize(("begins", "ends", "why"), [(-10, -1, "expired on 2026-05-31"), (1, 10, "is valid only from 2026-06-02")])
def test_dates_are_judged_only_when_asked(tmp_path, begins, ends, why):
    leaf, key = issue("edge.example", begins=begins, ends=ends)
    pair = write(tmp_path, [leaf], key)
    assert why in (refusal(*pair, NOW.timestamp()) or "")
    assert refusal(*pair) is None


def test_a_key_of_another_certificate(tmp_path):
    leaf, _ = issue("edge.example")
    _, other = issue("other.example")
    assert "does not belong to the certificate" in (refusal(*write(tmp_path, [leaf], other)) or "")


def test_a_chain_out_of_order(tmp_path):
    leaf, key = issue("edge.example")
    stranger, _ = issue("stranger.example")
    said = refusal(*write(tmp_path, [leaf, stranger], key)) or ""
    assert "is out of order: CN=edge.example was not issued by CN=stranger.example" in said


def test_a_key_with_a_password(tmp_path):
    leaf, key = issue("edge.example")
    assert "has a password; dnsdist cannot ask for it" in (refusal(*write(tmp_path, [leaf], key, b"x")) or "")


def test_files_that_are_missing_or_garbage(tmp_path):
    leaf, key = issue("edge.example")
    chain, file = write(tmp_path, [leaf], key)
    (tmp_path / "tls.key").write_text("garbage")
    assert "cannot be used with" in (refusal(chain, file) or "")
    (tmp_path / "tls.key").unlink()
    assert "the key" in (refusal(chain, file) or "")
    assert "No such file" in (refusal(chain, file) or "")
    (tmp_path / "tls.crt").write_text("garbage")
    assert "is not PEM" in (refusal(chain, file) or "")
    (tmp_path / "tls.crt").unlink()
    assert "cannot be read: No such file" in (refusal(chain, file) or "")
