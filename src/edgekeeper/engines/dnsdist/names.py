"""The names and ids that a running dnsdist is known by. Pure."""

from __future__ import annotations

import uuid

NAMESPACE = uuid.UUID("5b7d1f0e-2c57-5d8a-9a53-0d6b5c1de53a")
"""Namespace of all our uuid5s. Never change it: the ids place members on the consistent-hashing ring."""

RESOLVER, AUTHORITATIVE, RETRY, STREAM = "resolver", "authoritative", "retry", "retry-stream"


def identify(what: str) -> str:
    """The stable id of ``what``."""
    return str(uuid.uuid5(NAMESPACE, what))


def forward_pool(zone: str) -> str:
    """The pool of a forwarded zone."""
    return f"forward-{zone}"
