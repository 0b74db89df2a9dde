"""One moment by every clock that a machine has, and how long ago another one was, whatever was done to the clocks between."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment, in seconds of each clock; ``boot_id`` is empty where the kernel does not tell it."""

    wall: float
    """Unix time; jumps when somebody sets the clock."""
    boot: float
    """Since the boot, the time asleep included (CLOCK_BOOTTIME); never jumps."""
    boot_id: str
    """Which boot that was."""
    mono: float
    """Since the boot without the time asleep (CLOCK_MONOTONIC): the axis that decisions are made on."""

    def later(self, seconds: float) -> Moment:
        """The moment so many seconds after this one."""
        return replace(self, wall=self.wall + seconds, boot=self.boot + seconds, mono=self.mono + seconds)


def elapsed(then: Moment, now: Moment) -> float:
    """Seconds from one moment to a later one, never negative.

    Within one boot the wall clock is not asked. Over a reboot it is the only one that knows how long the machine was down; it is
    believed, but for less than the time since the boot.
    """
    if now.boot_id and now.boot_id == then.boot_id:
        return max(now.boot - then.boot, 0.0)
    rebooted = bool(now.boot_id and then.boot_id)
    return max(now.wall - then.wall, now.boot if rebooted else 0.0, 0.0)


def strayed(then: Moment, now: Moment) -> float:
    """By how many seconds the wall clock was set, ahead or back, from one moment to a later one of the same boot."""
    return abs((now.wall - then.wall) - (now.boot - then.boot))
