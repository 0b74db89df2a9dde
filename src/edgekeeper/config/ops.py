"""``ops:`` health, status and metrics of one node, and where its peers have theirs."""

from __future__ import annotations

from pydantic import Field

from edgekeeper.config.kinds import Host, Listen, Path, Section


class Ops(Section):
    """The ops listener. Anything but loopback needs a token or mTLS (``/healthz/*`` excepted)."""

    listen: Listen | None = Field(None, description="Where health, status and metrics are served; 127.0.0.1:8084 when not said (8086 for `lb run`).")
    token_file: Path | None = Field(None, description="File with the bearer token that /status and /metrics ask for.")
    certificate: Path | None = Field(None, description="Certificate chain for HTTPS, PEM; also shown to other nodes when they are asked.")
    key: Path | None = Field(None, description="Its key, PEM, readable by its owner only.")
    client_ca: Path | None = Field(None, description="CA of the client certificates that are let in (mTLS).")
    peer_ca: Path | None = Field(None, description="CA of the other nodes' listeners; client_ca when not said, without that the system's CAs.")

    @property
    def believed_ca(self) -> str | None:
        """Whose certificates count when a node's listener is asked; None is the system's CAs."""
        return self.peer_ca or self.client_ca


class Peer(Section):
    """Another node, as this one reaches it."""

    address: Host = Field(description="Address of the node.")
    address6: Host | None = Field(None, description="Its IPv6 address where the one above is IPv4; for IPv6 VIPs.")
    ops: str | None = Field(None, description="Base URL of its ops listener; without it its state is unknown here.", pattern=r"^https?://[^\s\"']+$")
