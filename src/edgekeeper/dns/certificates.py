"""The certificate that the encrypted listeners share: checked before it is used, kept while it is good.

dnsdist dies at its start of a certificate that is missing or does not match, and its own check says
nothing (measured on 1.7.3 and 2.1.3). So it is given a copy of the last good pair under a path that
never changes, and a bad pair in the config's folder hurts nobody.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from edgekeeper.config.dns import Tls
from edgekeeper.engines.dnsdist.topology import Certificate
from edgekeeper.errors import EdgekeeperError, UsageError
from edgekeeper.host.files import make_folder, point, read_text, write_text

SOON_S = 14 * 86400
"""An alarm this long before a certificate ends: renewals usually come at 30 days."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A chain and its key that belong together; ``ends`` is Unix time."""

    chain: str
    key: str
    digest: str
    subject: str
    ends: float


def read_pair(tls: Tls, now: float) -> Pair:
    """The pair in the config's folder, or a UsageError that says what is wrong with it."""
    folder = Path(tls.dir or ".")
    chain, key = read_text(folder / tls.certificate, 1 << 20), read_text(folder / tls.key, 1 << 20)
    try:
        chained = x509.load_pem_x509_certificates(chain.encode())
    except ValueError as err:
        msg = f"{folder / tls.certificate} is not a certificate chain in PEM: {err}"
        raise UsageError(msg) from err
    try:
        private = serialization.load_pem_private_key(key.encode(), password=None)
    except (ValueError, TypeError) as err:
        msg = f"{folder / tls.key} is not an unencrypted private key in PEM"
        raise UsageError(msg) from err
    leaf = chained[0]
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if leaf.public_key().public_bytes(*form) != private.public_key().public_bytes(*form):
        msg = f"the key {folder / tls.key} does not belong to the certificate {folder / tls.certificate}"
        raise UsageError(msg)
    ends = leaf.not_valid_after_utc.timestamp()
    if ends <= now:
        msg = f"{folder / tls.certificate} expired on {datetime.fromtimestamp(ends, UTC):%Y-%m-%d %H:%M} UTC"
        raise UsageError(msg)
    if leaf.not_valid_before_utc.timestamp() > now + 300:
        msg = f"{folder / tls.certificate} is not valid before {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC; is this machine's clock right?"
        raise UsageError(msg)
    digest = hashlib.sha256(f"{chain}\0{key}".encode()).hexdigest()
    return Pair(chain, key, digest, leaf.subject.rfc4514_string(), ends)


class CertificateStore:
    """The last good pair, under one path: ``FOLDER/live/tls.crt`` and ``tls.key``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, pair: Pair) -> Certificate:
        """Copy a good pair and make it the live one by a single rename."""
        make_folder(self._folder)
        name = pair.digest[:16]
        target = make_folder(self._folder / name)
        write_text(target / "tls.crt", pair.chain)
        write_text(target / "tls.key", pair.key)
        write_text(target / "digest", pair.digest)
        point(self._folder / "live", name)
        for old in self._folder.iterdir():
            if old.is_dir() and not old.is_symlink() and old.name != name:
                shutil.rmtree(old, ignore_errors=True)
        return self._named(pair.digest)

    def last(self) -> Certificate | None:
        """The pair that was kept last, or None."""
        try:
            return self._named(read_text(self._folder / "live" / "digest"))
        except EdgekeeperError:
            return None

    def _named(self, digest: str) -> Certificate:
        live = self._folder / "live"
        return Certificate(str(live / "tls.crt"), str(live / "tls.key"), digest)
