"""What an installed keepalived is, read from ``keepalived --version``. Pure.

Measured with Debian's 2.2.7, 2.3.3 and 2.3.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from edgekeeper.errors import MissingError

_VERSION = re.compile(r"^Keepalived v(\d+)\.(\d+)(?:\.(\d+))?", re.MULTILINE)
_OPTIONS = re.compile(r"^Config options:(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Features:
    """One build of keepalived: its version, and which subsystems it was built with."""

    version: tuple[int, int, int]
    lvs: bool = True
    bfd: bool = True

    @property
    def text(self) -> str:
        """The version as people write it."""
        return ".".join(str(part) for part in self.version)

    @property
    def hmac(self) -> bool:
        """Whether adverts can be signed (2.4 on)."""
        return self.version >= (2, 4, 0)

    @property
    def says_vrrp(self) -> bool:
        """Whether it has ``--vrrp``: a build of VRRP alone takes it for an abbreviation of ``--vrrp_pid`` and swallows the next argument (2.4.3)."""
        return self.lvs or self.bfd

    @property
    def test_kills_itself(self) -> bool:
        """Whether ``-t`` ends by its own SIGTERM when scripts run as another user than root (2.2.7)."""
        return self.version < (2, 3, 0)


def parse(output: str) -> Features:
    """The features that ``keepalived --version`` tells; MissingError when that was not keepalived speaking, or one that is too old."""
    version = _VERSION.search(output)
    if version is None:
        said = output.strip().splitlines()[0][:120] if output.strip() else "nothing"
        msg = f"the engine's --version is not keepalived's: it said {said!r}; give vip.engine.binary the path of keepalived 2.2 or later"
        raise MissingError(msg)
    number = (int(version[1]), int(version[2]), int(version[3] or 0))
    if number < (2, 2, 0):
        msg = f"keepalived {number[0]}.{number[1]}.{number[2]} is older than 2.2; install 2.2 or later"
        raise MissingError(msg)
    listed = _OPTIONS.search(output)
    words = listed[1].split() if listed else ["LVS", "BFD"]
    return Features(number, "LVS" in words, "BFD" in words)
