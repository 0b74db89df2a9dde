"""What one process of dnsdist is given at its start and keeps: credentials and private loopback ports. Pure.

The rendered files hold the API key and the password only as scrypt hashes. dnsdist's form
``$scrypt$ln=10,p=1,r=8$salt$hash`` was made with ``hashlib`` here and authenticated on 1.7.3,
1.9.16 and 2.1.3. The console key must stand there as it is: it encrypts.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field

LOG_N = 10
"""Cost of the hash: 2**10 rounds, 2 ms a check; the secrets have 256 bits, so more would buy nothing."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Ports are on 127.0.0.1. ``console_key`` is base64 of 32 bytes, ``api_key`` and ``password`` are 64 hex digits.

    ``api_salt`` and ``password_salt`` are base64 of 16 bytes; kept, so that the same seat renders the same bytes.
    """

    console_port: int
    api_port: int
    private_port: int
    console_key: str = field(repr=False)
    api_key: str = field(repr=False)
    password: str = field(repr=False)
    api_salt: str = field(repr=False)
    password_salt: str = field(repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""
        return (self.console_key, self.api_key, self.password)


def scrypt(secret: str, salt: str) -> str:
    """``secret`` as dnsdist's hash, with ``salt`` in base64."""
    digest = hashlib.scrypt(secret.encode(), salt=base64.b64decode(salt), n=1 << LOG_N, r=8, p=1, dklen=32)
    return f"$scrypt$ln={LOG_N},p=1,r=8${salt}${base64.b64encode(digest).decode()}"


def make(ports: tuple[int, int, int], noise: bytes) -> Seat:
    """A seat from three free ports (console, API, private DNS) and 128 random bytes."""
    if len(noise) != 128:
        msg = f"a seat takes 128 random bytes, not {len(noise)}"
        raise ValueError(msg)
    return Seat(
        console_port=ports[0],
        api_port=ports[1],
        private_port=ports[2],
        console_key=base64.b64encode(noise[:32]).decode(),
        api_key=noise[32:64].hex(),
        password=noise[64:96].hex(),
        api_salt=base64.b64encode(noise[96:112]).decode(),
        password_salt=base64.b64encode(noise[112:128]).decode(),
    )


def console_key_bytes(key: str) -> bytes | None:
    """The 32 bytes of a console key, or None when it is not base64 of 32 bytes (dnsdist then runs without a console)."""
    try:
        raw = base64.b64decode(key, validate=True)
    except ValueError:
        return None
    return raw if len(raw) == 32 else None
