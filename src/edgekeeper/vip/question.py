"""DNS questions of the look at a service, and what answers say: as much as tells life from death. Pure.

Beside ``probe.packet`` because the track script starts each second: nothing is imported here.
"""

from __future__ import annotations

TYPES = {"A": 1, "NS": 2, "SOA": 6, "TXT": 16, "AAAA": 28}
NOERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
RCODES = ("NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED")

_HEADER = 12
_LONGEST_LABEL, _LONGEST_NAME = 63, 254


def section(name: str, qtype: str) -> bytes:
    """The question section for a name in class IN; ValueError when it is no name or no type that is known."""
    if qtype not in TYPES:
        msg = f"{qtype!r} is none of the types {', '.join(TYPES)}"
        raise ValueError(msg)
    out = b""
    for label in name.rstrip(".").split(".") if name.rstrip(".") else ():
        raw = label.encode("ascii", "strict") if label.isascii() else b""
        if not 0 < len(raw) <= _LONGEST_LABEL:
            msg = f"{name!r} is not a domain name"
            raise ValueError(msg)
        out += bytes((len(raw),)) + raw.lower()
    if len(out) > _LONGEST_NAME:
        msg = f"{name!r} is not a domain name: too long"
        raise ValueError(msg)
    return out + b"\0" + TYPES[qtype].to_bytes(2, "big") + b"\0\1"


def packet(ident: int, asked: bytes) -> bytes:
    """A packet with one question; recursion is desired."""
    return ident.to_bytes(2, "big") + b"\1\0\0\1\0\0\0\0\0\0" + asked


def rcode(raw: bytes, ident: int, asked: bytes) -> int | None:
    """The RCODE of an answer to exactly this question; None for anything else (a stray, a late answer, a question).

    An error may come without the question, as some servers send it.
    """
    if len(raw) < _HEADER or raw[:2] != ident.to_bytes(2, "big") or not raw[2] & 0x80:
        return None
    code = raw[3] & 0x0F
    if raw[4:6] == b"\0\0":
        return code if code not in (NOERROR, NXDOMAIN) else None
    if raw[4:6] != b"\0\1" or raw[_HEADER : _HEADER + len(asked)].lower() != asked.lower():
        return None
    return code


def said(code: int) -> str:
    """The RCODE's name."""
    return RCODES[code] if code < len(RCODES) else f"RCODE{code}"
