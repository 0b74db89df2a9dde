"""One question that a client asked and what came of it: the shape of a probe record (schema 1)."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Sample:
    """A probe of ``target``; ``sent`` and ``done`` are seconds on one clock, ``done >= sent``.

    ``conn`` is fresh or warm; ``slow`` marks a good answer that came late; the ``*_ms`` parts are
    None where they do not apply; ``answered_by`` names who answered, when the answer says so. ``id`` is
    what a request by HTTP carried (``kp=...`` in its query), so that the server's log shows the same question.
    """

    ts: float
    target: str
    conn: str
    sent: float
    done: float
    ok: bool
    slow: bool = False
    error: str | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None
    answered_by: str | None = None
    id: str | None = None
