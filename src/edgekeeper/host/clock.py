"""The real clock behind ``ports.Clock``."""

from __future__ import annotations

import time


class SystemClock:
    """Seconds that never jump (``monotonic``, counted from the boot) and the wall clock (Unix time)."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes back, stands still while the machine sleeps."""
        return time.monotonic()

    def wall(self) -> float:
        """Unix time in seconds; may jump when somebody sets the clock."""
        return time.time()
