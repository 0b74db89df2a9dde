"""What a check is: an id that is kept, the severity it may give, its page, and a pure function. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from edgekeeper.doctor.facts import HaproxyFacts
from edgekeeper.engines.haproxy.cfg_values import Config
from edgekeeper.model.finding import Finding, Severity


class Needs(StrEnum):
    """What a check looks at; without it, it is not judged (never passed)."""

    CONFIG = "config"
    RUNTIME = "runtime"
    INVENTORY = "inventory"


@dataclass(frozen=True, slots=True)
class Page:
    """What ``--explain`` prints and the docs publish (Markdown): what it looks for, why it hurts, how to fix it, what other linters say."""

    what: str
    why: str
    fix: str
    others: str


@dataclass(frozen=True, slots=True)
class Check:
    """``severity`` is the worst that it gives; ``title`` says in a few words what is wrong."""

    id: str
    severity: Severity
    title: str
    needs: Needs
    page: Page
    run: Callable[[HaproxyFacts, Config], Iterable[Finding]]

    def markdown(self) -> str:
        """The page as it is published."""
        return (
            f"# {self.id}: {self.title}\n\n"
            f"Severity: {self.severity}{'' if self.severity is Severity.INFO else ' at worst'}. Looks at: {_LOOKS[self.needs]}.\n\n"
            f"## What it looks for\n\n{self.page.what.strip()}\n\n"
            f"## Why it hurts\n\n{self.page.why.strip()}\n\n"
            f"## How to fix it\n\n{self.page.fix.strip()}\n\n"
            f"## What other linters say\n\n{self.page.others.strip()}\n"
        )


_LOOKS = {
    Needs.CONFIG: "the configuration",
    Needs.RUNTIME: "the running HAProxy (`--socket`)",
    Needs.INVENTORY: "the configuration, and a cluster or an inventory",
}

NO_LINTER = "`haproxy -c` accepts it. No linter that was looked at (kube-score, kube-linter, popeye, Polaris, Kyverno policies) reads HAProxy's configuration."
"""What is true of every check here."""
