"""Words of haproxy.cfg and of its runtime commands, written so that no character can end them. Pure.

In the file, everything but letters, digits and a few harmless marks stands inside double quotes with
a backslash before what means something there. A runtime command has no quoting that all versions
read alike, so there a word with anything else in it is refused.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z0-9_.:/@%+=,\[\]*-]+")
_COMMAND = re.compile(r"[A-Za-z0-9_.:/@+=,\[\]-]+")


def word(text: str) -> str:
    """One word of haproxy.cfg; ValueError for characters that no quoting carries (a line end, NUL)."""
    if any(char in text for char in "\n\r\0"):
        msg = f"{text!r} has a line end in it; HAProxy's configuration cannot carry that"
        raise ValueError(msg)
    if _PLAIN.fullmatch(text):
        return text
    escaped = "".join(f"\\{char}" if char in '\\"$' else char for char in text)
    return f'"{escaped}"'


def command_word(text: str) -> str:
    """One word of a runtime command; ValueError for what could end it (a space, ``;``, a line end)."""
    if not _COMMAND.fullmatch(text):
        msg = f"{text!r} cannot be said in a command of HAProxy's socket"
        raise ValueError(msg)
    return text


def seconds(value: float) -> str:
    """A duration as HAProxy reads it: whole milliseconds, in the largest unit that holds it exactly."""
    ms = max(1, round(value * 1000))
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"
