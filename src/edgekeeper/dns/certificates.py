"""The certificate that the encrypted listeners share: checked before it is used, kept while it is good.

dnsdist dies at its start of a certificate that is missing or does not match, and its own check says
nothing (measured on 1.7.3 and 2.1.3). So it is given a copy of the last good pair under a path that
never changes, and a bad pair in the config's folder hurts nobody.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from edgekeeper.config.dns import Tls
from edgekeeper.engines.dnsdist import certificates
from edgekeeper.engines.dnsdist.topology import Certificate
from edgekeeper.errors import EdgekeeperError, StepFailedError, UsageError
from edgekeeper.host.files import make_folder, point, read_text, write_text

LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Taken:
    """A pair that was copied and found good; ``ends`` is Unix time."""

    certificate: Certificate
    subject: str
    ends: float


class CertificateStore:
    """The last good pair, under one path: ``FOLDER/live/tls.crt`` and ``tls.key``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, tls: Tls, now: float) -> Taken:
        """Copy the config's pair, check the copy, and make it the live one; UsageError says what is wrong with it."""
        source = Path(tls.dir or ".")
        chain, key = read_text(source / tls.certificate, LIMIT), read_text(source / tls.key, LIMIT)
        digest = hashlib.sha256(f"{chain}\0{key}".encode()).hexdigest()
        make_folder(self._folder)
        name = digest[:16]
        target = make_folder(self._folder / name)
        for file, text in (("tls.crt", chain), ("tls.key", key), ("digest", digest)):
            write_text(target / file, text)
        refusal = certificates.refusal(str(target / "tls.crt"), str(target / "tls.key"), now)
        if refusal is not None:
            last = self.last()
            if last is None or last.digest != digest:  # the live pair itself may have expired: it stays
                shutil.rmtree(target, ignore_errors=True)
            told = refusal.replace(str(target / "tls.crt"), str(source / tls.certificate)).replace(str(target / "tls.key"), str(source / tls.key))
            raise UsageError(told)
        try:
            point(self._folder / "live", name)
        except OSError as err:
            msg = f"{self._folder}/live cannot be made to name the new certificate: {err.strerror or err}"
            raise StepFailedError(msg) from err
        for old in self._folder.iterdir():
            if old.is_dir() and not old.is_symlink() and old.name != name:
                shutil.rmtree(old, ignore_errors=True)
        leaf = x509.load_pem_x509_certificates(chain.encode())[0]
        return Taken(self._named(digest), leaf.subject.rfc4514_string() or "the certificate", leaf.not_valid_after_utc.timestamp())

    def last(self) -> Certificate | None:
        """The pair that was taken last, or None."""
        try:
            return self._named(read_text(self._folder / "live" / "digest"))
        except EdgekeeperError:
            return None

    def _named(self, digest: str) -> Certificate:
        live = self._folder / "live"
        return Certificate(str(live / "tls.crt"), str(live / "tls.key"), digest)
