"""One figure, one question: each is a function of the study. Pure. ``ALL`` is their order on the page."""

from __future__ import annotations

from collections.abc import Callable

from edgekeeper.report.document import Figure
from edgekeeper.report.figures.answered import answered
from edgekeeper.report.figures.baseline import f2
from edgekeeper.report.figures.bgp import f8
from edgekeeper.report.figures.blocked import f7
from edgekeeper.report.figures.budget import budget
from edgekeeper.report.figures.clocks import f13
from edgekeeper.report.figures.compare import f14
from edgekeeper.report.figures.drains import fdrains
from edgekeeper.report.figures.edge import f5
from edgekeeper.report.figures.gaps import f11
from edgekeeper.report.figures.minutes import f3
from edgekeeper.report.figures.moves import f6
from edgekeeper.report.figures.outages import f4, told
from edgekeeper.report.figures.pinned import clients, f15
from edgekeeper.report.figures.probes import smoke
from edgekeeper.report.figures.quality import clean, cut, latency, masked
from edgekeeper.report.figures.readings import told_twice
from edgekeeper.report.figures.recover import recover
from edgekeeper.report.figures.requests import f1
from edgekeeper.report.figures.switchover import f12
from edgekeeper.report.figures.timeline import timeline
from edgekeeper.report.figures.watchdog import cooldowns, f9, f10
from edgekeeper.report.study import Study

ALL: tuple[Callable[[Study], Figure], ...] = (
    timeline,
    f1,
    f2,
    f3,
    f4,
    f5,
    told_twice,
    smoke,
    answered,
    told,
    recover,
    fdrains,
    f6,
    f7,
    f8,
    f9,
    cooldowns,
    f10,
    f11,
    f12,
    clients,
    latency,
    cut,
    masked,
    f15,
    clean,
    budget,
    f14,
    f13,
)
