"""By which way a target is reached from here: the kernel's own answer, without sending anything."""

from __future__ import annotations

import socket


def source_of(host: str, port: int) -> tuple[str, str] | None:
    """Source address and resolved target address; None when there is no way or no such name."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, proto) as sock:
            sock.connect(address)
            return str(sock.getsockname()[0]), str(address[0])
    except OSError:
        return None
