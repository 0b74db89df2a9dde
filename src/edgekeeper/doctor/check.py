"""What a check is: an id that is kept, the severity it may give, its page, and a pure function. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from edgekeeper.model.finding import Finding, Severity


class Needs(StrEnum):
    """What a check looks at; without it, it is not judged (never passed)."""

    CONFIG = "config"
    RUNTIME = "runtime"
    INVENTORY = "inventory"
    CLUSTER = "cluster"
    VIPS = "keepalived"


@dataclass(frozen=True, slots=True)
class Page:
    """What ``--explain`` prints and the docs publish (Markdown): what it looks for, why it hurts, how to fix it, what other linters say."""

    what: str
    why: str
    fix: str
    others: str


@dataclass(frozen=True, slots=True)
class Check:
    """``severity`` is the worst that it gives; ``title`` says in a few words what is wrong.

    ``run`` is given the facts and, when it looks at HAProxy, one reading of its configuration.
    """

    id: str
    severity: Severity
    title: str
    needs: Needs
    page: Page
    run: Callable[..., Iterable[Finding]]

    @property
    def engine(self) -> str:
        """Whose configuration it is about."""
        return {Needs.VIPS: "keepalived", Needs.CLUSTER: "kubernetes"}.get(self.needs, "haproxy")

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
    Needs.INVENTORY: "the configuration, and a cluster (`--kubeconfig`) or an inventory",
    Needs.CLUSTER: "the cluster (`--kubeconfig`)",
    Needs.VIPS: "the keepalived configurations of all hosts that are given, together",
}

NO_LINTER = "`haproxy -c` accepts it. No linter that was looked at (kube-score, kube-linter, popeye, Polaris, Kyverno policies) reads HAProxy's configuration."
"""What is true of every check of HAProxy."""

NO_VIP_LINTER = "No linter that was looked at (kube-score, kube-linter, popeye, Polaris, Kyverno policies) reads keepalived's configuration."
"""What is true of every check of keepalived; what ``keepalived -t`` says of it, each page says itself."""
