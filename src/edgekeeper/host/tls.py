"""Whose servers a question of ours believes, and what it shows them of itself."""

from __future__ import annotations

import functools
import ssl
from dataclasses import dataclass

from edgekeeper.errors import MissingError
from edgekeeper.host.watch import fingerprint


@dataclass(frozen=True, slots=True)
class Trust:
    """The CA's file (the system's CAs when None), and an own certificate with its key for servers that ask for one."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


NOBODY = Trust()
"""The system's CAs, and nothing to show."""


def client_context(trust: Trust, url: str) -> ssl.SSLContext:
    """The context for a question to ``url``, loaded once for each content of the files; MissingError names the file that cannot be used."""
    try:
        return _context(trust, *(fingerprint(file) if file else None for file in (trust.ca_file, trust.cert_file, trust.key_file)))
    except (OSError, ssl.SSLError) as err:
        msg = f"{_culprit(trust)} of {url}: {err.strerror or err}; {url} is not asked"
        raise MissingError(msg) from err


@functools.lru_cache(maxsize=8)
def _context(trust: Trust, *_: object) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=trust.ca_file)
    if trust.cert_file is not None:
        made.load_cert_chain(trust.cert_file, trust.key_file, password="")  # without one OpenSSL would ask for it on the terminal
    return made


def _culprit(trust: Trust) -> str:
    """Which of the files it is: the error of OpenSSL does not say."""
    try:
        ssl.create_default_context(cafile=trust.ca_file)
    except (OSError, ssl.SSLError):
        return f"{trust.ca_file} cannot be used as the CA"
    return f"{trust.cert_file} and its key {trust.key_file} cannot be shown as the client certificate"
