"""What an installed HAProxy is, read from ``haproxy -vv``. Pure.

Measured with Debian's 2.6.12, 3.0.11 and 3.2.26.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from edgekeeper.errors import MissingError

_VERSION = re.compile(r"^HAProxy version (\d+)\.(\d+)(?:[.-](?:dev)?(\d+))?", re.MULTILINE)
_FEATURES = re.compile(r"^Feature list :(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Features:
    """One build of HAProxy: its version, and whether it can listen on absent addresses and speak TLS."""

    version: tuple[int, int, int]
    transparent: bool
    tls: bool

    @property
    def text(self) -> str:
        """The version as people write it."""
        return ".".join(str(part) for part in self.version)


def parse(output: str) -> Features:
    """The features that ``haproxy -vv`` tells; MissingError when that was not HAProxy speaking, or one that is too old."""
    version = _VERSION.search(output)
    if version is None:
        said = output.strip().splitlines()[0][:80] if output.strip() else "nothing"
        msg = f"the engine's -vv is not HAProxy's: it said {said!r}; give lb.engine.binary the path of HAProxy 2.6 or later"
        raise MissingError(msg)
    number = (int(version[1]), int(version[2]), int(version[3] or 0))
    if number < (2, 6, 0):
        msg = f"HAProxy {number[0]}.{number[1]}.{number[2]} is older than 2.6; install 2.6 or later"
        raise MissingError(msg)
    listed = _FEATURES.search(output)
    words = listed[1].split() if listed else []
    return Features(number, "+TPROXY" in words or not words, "+OPENSSL" in words or "+OPENSSL_AWSLC" in words or not words)
