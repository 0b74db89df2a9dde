"""The formats of logs that are known, and which of them a file is of. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from edgekeeper.report.formats.base import Context, Format
from edgekeeper.report.formats.bgp import FRR, GOBGP
from edgekeeper.report.formats.bird import BIRD
from edgekeeper.report.formats.clf import Combined, IngressNginx, TraefikClf
from edgekeeper.report.formats.cnpg import CNPG
from edgekeeper.report.formats.drill import DRILL
from edgekeeper.report.formats.envoy import Envoy
from edgekeeper.report.formats.haproxy import HaProxy
from edgekeeper.report.formats.journal import JOURNAL
from edgekeeper.report.formats.keepalived import KEEPALIVED, KEEPALIVED_FIFO
from edgekeeper.report.formats.kubectl import KUBECTL
from edgekeeper.report.formats.kubeevents import K8S_EVENTS
from edgekeeper.report.formats.kubeleases import K8S_LEASES
from edgekeeper.report.formats.mixed import MIXED_BELOW, Mixed
from edgekeeper.report.formats.netbird import NETBIRD
from edgekeeper.report.formats.probe import PROBE_RECORD
from edgekeeper.report.formats.sessions import LbSessions, ShowSess
from edgekeeper.report.formats.syslog import head
from edgekeeper.report.formats.traefik import TraefikJson
from edgekeeper.report.formats.watchdog import WATCHDOG

__all__ = ["FORMATS", "Context", "Format", "by_name", "recognise"]

LOOK_AT = 200
"""Lines that are looked at to recognise a file."""

HEADS_FROM = 0.8
"""The share of lines with the head of a syslog from which a file is taken for one."""

HEAD_MOST = 512
"""Bytes of a line in which its head is looked for."""

FORMATS: tuple[Format, ...] = (
    TraefikJson(),
    TraefikClf(),
    IngressNginx(),
    HaProxy(),
    Envoy(),
    ShowSess(),
    LbSessions(),
    Combined(),
    FRR,
    GOBGP,
    BIRD,
    KEEPALIVED,
    KEEPALIVED_FIFO,
    KUBECTL,
    K8S_EVENTS,
    K8S_LEASES,
    CNPG,
    NETBIRD,
    WATCHDOG,
    JOURNAL,
    PROBE_RECORD,
    DRILL,
)
"""All of them, most particular first: a tie is broken by this order."""


MIXED = Mixed(lambda: FORMATS)
"""For a file with lines of several formats."""


def by_name(name: str) -> Format | None:
    """The format of that name."""
    return next((f for f in (*FORMATS, MIXED) if f.name == name), None)


def recognise(lines: Sequence[bytes], *, journal: bool = False) -> Format | None:
    """The format that most of the first lines are certainly of, ``MIXED`` when others have their share; None when no line is of any.

    A machine's own log (lines with the head of a syslog, or of a ``journal``) is mixed too when most lines are of no format: what matters
    may come later.
    """
    best: Format | None = None
    most = 0
    known = [False] * min(len(lines), LOOK_AT)
    for one in FORMATS:
        liked = [one.likes(line) for line in lines[:LOOK_AT]]
        known = [a or b for a, b in zip(known, liked, strict=True)]
        if sum(liked) > most:
            best, most = one, sum(liked)
    if most < MIXED_BELOW * sum(known) or (2 * most < len(known) and (journal or _heads(lines[:LOOK_AT]) >= HEADS_FROM * len(known))):
        return MIXED
    return best


def _heads(lines: Sequence[bytes]) -> int:
    return sum(head(line[:HEAD_MOST].decode("utf-8", "replace"), Context()) is not None for line in lines)
