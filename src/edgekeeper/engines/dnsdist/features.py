"""What an installed dnsdist can do, read from ``dnsdist --version``. Pure.

Measured with Debian's 1.7.3, 1.9.16 and 2.1.3: the first line names the version, the second lists
what was compiled in. What is not listed there follows from the version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from edgekeeper.errors import MissingError

_VERSION = re.compile(r"^dnsdist (?:v)?(\d+)\.(\d+)(?:\.(\d+))?", re.MULTILINE)
_COMPILED = re.compile(r"^Enabled features:(.*)$", re.MULTILINE)
_TOKEN = {"dot": "dns-over-tls", "doh": "dns-over-https", "doq": "dns-over-quic", "doh3": "dns-over-http3"}


@dataclass(frozen=True, slots=True)
class Features:
    """One build of dnsdist.

    ``protocols`` are the listeners it has (do53, dot, doh, doq, doh3). ``retry``: a query that timed
    out can be restarted elsewhere. ``validator``: Lua may judge the answer to a health check.
    ``lazy``: health checks that start with failing queries. ``bpf_table``: ``newBPFFilter`` takes
    a table (1.7 takes three numbers). ``structured``: log lines are ``key="value"`` pairs.
    """

    version: tuple[int, int, int]
    yaml: bool
    protocols: tuple[str, ...]
    ebpf: bool

    @property
    def text(self) -> str:
        """The version as people write it."""
        return ".".join(str(part) for part in self.version)

    @property
    def retry(self) -> bool:
        """Timeout response rules came with 2.0; 1.9.16 has ``setRestartable`` but nothing that restarts after a timeout."""
        return self.version >= (2, 0, 0)

    @property
    def validator(self) -> bool:
        """``setHealthCheckResponseValidator`` is in 2.1.3, not in 1.9.16, and cannot be used at run time."""
        return self.version >= (2, 1, 0)

    @property
    def lazy(self) -> bool:
        """The health-check mode ``lazy`` came with 1.8."""
        return self.version >= (1, 8, 0)

    @property
    def bpf_table(self) -> bool:
        """``newBPFFilter({...})`` came with 1.8; 1.7.3 takes positional numbers."""
        return self.version >= (1, 8, 0)

    @property
    def structured(self) -> bool:
        """2.1.3 logs ``msg="..." key="value"``; 1.9.16 logs plain sentences."""
        return self.version >= (2, 1, 0)


def parse(output: str) -> Features:
    """The features that ``dnsdist --version`` tells; MissingError when that was not dnsdist speaking."""
    version = _VERSION.search(output)
    if version is None:
        said = output.strip().splitlines()[0][:80] if output.strip() else "nothing"
        msg = f"the engine's --version is not dnsdist's: it said {said!r}; give engine.binary the path of dnsdist 1.7 or later"
        raise MissingError(msg)
    number = (int(version[1]), int(version[2]), int(version[3] or 0))
    if number < (1, 7, 0):
        msg = f"dnsdist {number[0]}.{number[1]}.{number[2]} is older than 1.7; install 1.7 or later"
        raise MissingError(msg)
    compiled = _COMPILED.search(output)
    words = re.sub(r"\([^)]*\)", " ", compiled[1]).split() if compiled else []
    protocols = ("do53", *(name for name, token in _TOKEN.items() if token in words))
    return Features(version=number, yaml="yaml" in words and number >= (2, 0, 0), protocols=protocols, ebpf="ebpf" in words)
