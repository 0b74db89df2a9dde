"""VRRP adverts as they are on the wire, versions 2 and 3 (RFC 3768, RFC 5798, RFC 9568). Pure.

No checksum is looked at: version 3 takes the IP addresses into it, which a raw socket does not hand over, and keepalived can be
told to leave them out. So an advert says what its sender claims; whether the sender is a peer is the caller's to check.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

_FIXED = 8
_ADVERTISEMENT = 1
_HMAC = 28
"""What ``auth_hmac`` puts behind the addresses, in bytes (measured, keepalived 2.4.3); version 2 puts its eight bytes of password there (2.3.3)."""


@dataclass(frozen=True, slots=True)
class Advert:
    """What an owner announces. Priority 0: it lets go; 255: the addresses are its own. ``advert_s`` is the interval of its adverts in seconds."""

    version: int
    vrid: int
    priority: int
    advert_s: float
    addresses: tuple[str, ...]


def parse(payload: bytes) -> Advert | None:
    """The advert in an IP payload; None when it is torn, or something else.

    Nothing in it says of which family its addresses are; its length does, with or without keepalived's HMAC behind them.
    """
    if len(payload) < _FIXED:
        return None
    version, kind = payload[0] >> 4, payload[0] & 0xF
    vrid, priority, count = payload[1], payload[2], payload[3]
    if kind != _ADVERTISEMENT or version not in {2, 3} or vrid == 0 or count == 0:
        return None
    rest = len(payload) - _FIXED
    each = 16 if version == 3 and rest in {16 * count, 16 * count + _HMAC} else 4
    if len(payload) < _FIXED + each * count:
        return None
    (interval,) = struct.unpack_from("!H", payload, 4)  # version 3: four reserved bits; version 2: the kind of authentication before it
    advert_s = (interval & 0xFFF) / 100 if version == 3 else float(interval & 0xFF)
    places = range(_FIXED, _FIXED + each * count, each)
    return Advert(version, vrid, priority, advert_s, tuple(str(ipaddress.ip_address(payload[at : at + each])) for at in places))
