"""What became of an action. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from edgekeeper.expose.plan import Action


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an action. ``kind`` is "" when it was done, else the kind of the failure; ``again_s``: when the mesh takes calls again."""

    action: Action
    kind: str = ""
    why: str = ""
    again_s: float | None = None
    dead_target: bool = False

    @property
    def done(self) -> bool:
        """Whether it was."""
        return not self.kind

    @property
    def word(self) -> str:
        """How the host is by it, in one word, where it was not done."""
        return _WORDS.get(self.kind, "pending")


_WORDS = {"no_cluster": "proxy-offline", "unknown_domain": "domain-unknown", "taken": "conflict", "invalid": "refused"}
