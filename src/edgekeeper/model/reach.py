"""How far a question to a server came: refused, filtered, no TLS, a black hole, not ready, or answered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reach(StrEnum):
    """The verdicts of the black-hole probe, the farthest first."""

    OK = "ok"
    """Answered; 401 and 403 too: whoever refuses a stranger is awake."""
    UNREADY = "unready"
    """Answered, and says that it is not ready (5xx), or says something that is not HTTP."""
    BLACK_HOLE = "black_hole"
    """Takes connections (and TLS) and then gives no byte: what a handshake cannot see."""
    TLS_FAIL = "tls_fail"
    """Takes connections; the TLS handshake failed or did not end."""
    FILTERED = "filtered"
    """No connection within the time, or no way there."""
    REFUSED = "refused"
    """Refused, or ended before it answered."""
    UNKNOWN = "unknown"
    """Could not be asked from here (no descriptor, no route, this process was held up): says nothing about the server."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What became of one question, with a sentence and the times of its parts in milliseconds (None where it did not come so far).

    ``body`` is the beginning of an answer that is not good, made printable. ``verified`` is whether the certificate could be
    verified: recorded, never enforced, None when that was not asked for; ``unverified`` says why it could not.
    """

    reach: Reach
    why: str
    status: int | None = None
    body: str = ""
    verified: bool | None = None
    unverified: str = ""
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None
