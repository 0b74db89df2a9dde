"""Whether a chain and a key can be served, and whether a listener shows them.

The standard library loads the pair the way OpenSSL in dnsdist does, which proves that the key
belongs to the certificate; ``cryptography`` reads the dates, which ``ssl`` does not tell of a file.
"""

from __future__ import annotations

import datetime as dt
import itertools
import socket
import ssl
from pathlib import Path

from cryptography import x509

_TIMEOUT_S = 3.0


def refusal(chain: str, key: str, now_s: float | None = None) -> str | None:
    """Why this pair must not be given to dnsdist (its check passes with garbage, its start then fails), or None.

    ``now_s`` is the wall clock in seconds. With None the dates are not judged: dnsdist serves an
    expired pair, and plain DNS must not wait for a renewal.
    """
    try:
        certificates = x509.load_pem_x509_certificates(Path(chain).read_bytes())
    except OSError as err:
        return f"the certificate {chain} cannot be read: {err.strerror}"
    except ValueError:
        return f"the certificate {chain} is not PEM; dnsdist would not start"
    now = dt.datetime.fromtimestamp(now_s, dt.UTC) if now_s is not None else None
    first = certificates[0]
    if now is not None and first.not_valid_after_utc <= now:
        return f"the certificate {chain} expired on {first.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if now is not None and first.not_valid_before_utc > now + dt.timedelta(minutes=5):
        return f"the certificate {chain} is valid only from {first.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
    for issued, issuer in itertools.pairwise(certificates):
        if issued.issuer != issuer.subject:
            return f"the chain {chain} is out of order: {_name(issued)} was not issued by {_name(issuer)}"
    return _pair(chain, key)


def shown(address: str, chain: str) -> str | None:
    """Why the TLS listener does not show the first certificate of ``chain``, or None when it does."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - the wildcard is reached over loopback
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # we compare the bytes
    try:
        wanted = x509.load_pem_x509_certificates(Path(chain).read_bytes())[0]
        with socket.create_connection((host, int(port)), _TIMEOUT_S) as plain, context.wrap_socket(plain) as wrapped:
            got = wrapped.getpeercert(binary_form=True)
    except (OSError, ValueError) as err:
        return f"{address} does not shake hands: {err}"
    if got is None or x509.load_der_x509_certificate(got) != wanted:
        return f"{address} still shows another certificate than {chain}"
    return None


def _pair(chain: str, key: str) -> str | None:
    def no_password() -> str:
        msg = "the key has a password"
        raise ValueError(msg)

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(chain, key, password=no_password)
    except ssl.SSLError as err:
        if err.reason == "KEY_VALUES_MISMATCH":
            return f"the key {key} does not belong to the certificate {chain}"
        return f"the key {key} cannot be used with {chain}: {err.reason or 'not PEM'}"
    except OSError as err:
        return f"the key {key} cannot be read: {err.strerror}"
    except ValueError:
        return f"the key {key} has a password; dnsdist cannot ask for it"
    return None


def _name(certificate: x509.Certificate) -> str:
    return certificate.subject.rfc4514_string()[:80] or "a certificate without a name"
