"""How much of a flapping target is journaled: all of a bad day, not all of a bad week. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgekeeper.meter.kept import Key

MOST = 60
"""Entries of one target in quick succession."""
EACH_S = 60.0
"""Then one in so many seconds."""


@dataclass(slots=True)
class Purse:
    """Tokens of each target; what is left out is counted and told with the next entry."""

    _tokens: dict[Key, float] = field(default_factory=dict)
    _at: dict[Key, float] = field(default_factory=dict)
    _left: dict[Key, int] = field(default_factory=dict)

    def may(self, key: Key, now: float) -> bool:
        """Whether an entry of this target is written; ``now`` is monotonic."""
        tokens = min(MOST, self._tokens.get(key, MOST) + (now - self._at.get(key, now)) / EACH_S)
        self._at[key] = now
        if tokens < 1:
            self._tokens[key] = tokens
            self._left[key] = self._left.get(key, 0) + 1
            return False
        self._tokens[key] = tokens - 1
        self._left.pop(key, None)
        return True

    def left_out(self, key: Key) -> int:
        """How many entries of this target were left out since the last that was written."""
        return self._left.get(key, 0)
