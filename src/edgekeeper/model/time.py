"""Durations as people write them, and spans with honest bounds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)"  # more digits would be infinite
_PART = re.compile(_NUMBER + "(ms|s|m|h|d)")
_SIZES = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_SIZE = re.compile(_NUMBER + r"\s*([A-Za-z]*)")


def parse_duration(text: str) -> float:
    """Seconds of ``90s``, ``1.5h``, ``1m30s``, ``250ms``; ValueError says how to write it."""
    if text == "0":
        return 0.0
    parts = _PART.findall(text)
    if not parts or "".join(n + u for n, u in parts) != text:
        msg = f"{text!r} is not a duration; write it with a unit: 250ms, 90s, 5m, 1h30m"
        raise ValueError(msg)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def format_duration(seconds: float) -> str:
    """The shortest way of writing it that ``parse_duration`` reads back (to the millisecond)."""
    milli = round(seconds * 1000)
    if milli == 0:
        return "0s"
    if milli % 1000:
        return f"{milli}ms" if milli < 1000 else f"{milli // 1000}.{milli % 1000:03d}".rstrip("0") + "s"
    whole = milli // 1000
    out = ""
    for unit, size in (("h", 3600), ("m", 60), ("s", 1)):
        number, whole = divmod(whole, size)
        out += f"{number}{unit}" if number else ""
    return out


def parse_size(text: str) -> int:
    """Bytes of ``1MiB``, ``64kB``, ``512``; ValueError says how to write it."""
    match = _SIZE.fullmatch(text)
    if match is None or match[2] not in _SIZES:
        msg = f"{text!r} is not a size; write it as 512, 64KiB, 1MiB, 2GiB"
        raise ValueError(msg)
    return int(float(match[1]) * _SIZES[match[2]])


UNKNOWN = "an unknown time"
"""How long something lasted of which neither an end nor a length was seen."""


@dataclass(frozen=True, slots=True)
class Span:
    """A duration known only within bounds, in seconds: the truth lies in ``[min_s, max_s]``."""

    min_s: float
    max_s: float

    def text(self) -> str:
        """``0.80 s to 1.30 s``, ``less than 4 ms``, ``at least 2.00 s`` (no end was seen), ``an unknown time`` (nothing was), ``0 s``."""
        if math.isinf(self.max_s):
            return f"at least {_bound(self.min_s)}" if self.min_s > 0 else UNKNOWN
        if self.max_s == 0:
            return "0 s"
        if self.min_s == 0:
            return f"less than {_bound(self.max_s)}"
        return f"{_bound(self.min_s)} to {_bound(self.max_s)}"

    def brief(self) -> str:
        """In whole seconds, rounded outwards: ``3 min 30 s to 3 min 31 s``, ``less than 4 s``, ``at least 2 min 0 s``, ``0 s``."""
        least = math.floor(round(self.min_s, 3))
        if math.isinf(self.max_s):
            return f"at least {_whole(least)}" if least else self.text()
        most = math.ceil(round(self.max_s, 3))
        return f"less than {_whole(most)}" if least == 0 < most else _whole(most) if least == most else f"{_whole(least)} to {_whole(most)}"


def _whole(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _bound(seconds: float) -> str:
    """Short ones in milliseconds, rounded up: a bound of nothing would be a lie."""
    return f"{seconds:.2f} s" if seconds >= 0.1 or seconds == 0 else f"{math.ceil(seconds * 1000)} ms"
