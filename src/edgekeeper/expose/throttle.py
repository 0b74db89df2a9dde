"""When the next call to an API may go that limits how often it is asked: pauses after a refusal, then a pace that it bears. Pure.

NetBird's limit, where it is on, is a bucket of 500 calls that fills by 6 a minute for each token; a refusal (429) does not say when
to come again. So after a refusal nothing is asked for a pause, which doubles as long as refusals follow one another. After that,
calls go one by one with the pause between them; one that went well halves a long pause, a few in a row a short one, until it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

FIRST_S: Final = 10.0
"""The first pause: at 6 calls a minute one more call is allowed after it."""

LONGEST_S: Final = 120.0
_GONE_S: Final = 0.5
_STEADY: Final = 3


@dataclass(frozen=True, slots=True)
class Throttle:
    """What is known of the limit; times are seconds of a clock that does not jump. A fresh one holds nothing back."""

    gap_s: float = 0.0
    next_at: float = 0.0
    since: float = float("-inf")
    well: int = 0
    refused: int = 0

    def wait_s(self, now: float) -> float:
        """Seconds until the next call may go; 0: now."""
        return max(0.0, self.next_at - now) if self.gap_s else 0.0

    def went(self, now: float) -> Throttle:
        """A call goes out: the one after it waits."""
        return replace(self, next_at=now + self.gap_s) if self.gap_s else self

    def bore(self, begun: float) -> Throttle:
        """A call that went out at ``begun`` was not refused."""
        if not self.gap_s or begun < self.since:
            return self
        well = self.well + 1
        if well < _STEADY and self.gap_s <= FIRST_S:
            return replace(self, well=well)
        gap = self.gap_s / 2
        return replace(self, well=0, gap_s=gap if gap >= _GONE_S else 0.0, next_at=self.next_at - gap)

    def refuse(self, begun: float, now: float) -> Throttle:
        """A call that went out at ``begun`` was refused for their number; those that went out together with it are refused but once."""
        count = self.refused + 1
        if begun < self.since:
            return replace(self, refused=count)
        again = self.gap_s > 0 and self.well == 0
        gap = min(LONGEST_S, self.gap_s * 2) if again else self.gap_s
        gap = max(FIRST_S, gap)
        return replace(self, gap_s=gap, next_at=now + gap, since=now, well=0, refused=count)
