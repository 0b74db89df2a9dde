"""The real clock behind ``ports.Clock``."""

from __future__ import annotations

import functools
import time
from pathlib import Path

from edgekeeper.model.moment import Moment


class SystemClock:
    """Seconds that never jump (``monotonic``, counted from the boot) and the wall clock (Unix time)."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes back, stands still while the machine sleeps."""
        return time.monotonic()

    def wall(self) -> float:
        """Unix time in seconds; may jump when somebody sets the clock."""
        return time.time()

    def moment(self) -> Moment:
        """Now by every clock; of a kernel that does not tell which boot this is, the wall clock is all there is to compare by."""
        return Moment(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), _boot_id(), time.monotonic())


@functools.cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
