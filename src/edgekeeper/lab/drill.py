"""What a drill is: a name, cases, a promise for each engine version, and a script that breaks something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from edgekeeper.lab.outcome import Measured
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import Plan

Script = Callable[[Stage], Awaitable[Measured]]


@dataclass(frozen=True, slots=True)
class Case:
    """One fault under one setting. ``since`` is the first engine version that can do it.

    ``plain`` is the baseline's script: the same one unless the user would do something else
    (restart the engine to change members, say); ``alone`` says that there is nothing to compare with.
    ``compare`` makes the plain side part of the verdict: its median of ``headline`` is taken from the
    product's, as the figure ``more_than_plain``. ``ci`` puts it into the subset that every change
    runs, from the engine version ``ci_since`` on (before it, a promise may be known to be out of reach).
    """

    name: str
    about: str
    script: Script
    promises: tuple[Promise, ...]
    plain: Script | None = None
    alone: bool = False
    since: tuple[int, ...] = ()
    ci: bool = False
    ci_since: tuple[int, ...] = ()
    compare: bool = False
    members: int = 3
    plan: Plan | None = None
    """The network, where it is another than a client, the edge and so many ``members`` behind it."""
    headline: str = "unanswered_3s"
    """The figure that the table shows beside the plain engine's."""
    unit: str = "queries"
    """The unit of ``headline``."""
    most_runs: int = 100
    """Runs at most, however many are asked for: a case of minutes that repeats its fault itself needs one."""


@dataclass(frozen=True, slots=True)
class Drill:
    """A drill: the promise in words, and its cases. The first case is what the demonstration shows."""

    name: str
    about: str
    cases: tuple[Case, ...]
    needs: tuple[str, ...] = field(default=())
    """Programs beside the engine, as ``program=debian package``."""
    engine: str = "dnsdist"
    """Which engine stands at the edge: ``dnsdist``, ``haproxy``, ``keepalived``, ``dockerd``, or ``kube-apiserver`` where none does; the versions of cases and promises are its."""
