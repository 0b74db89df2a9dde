"""What ``journalctl -o json`` says: one entry a line. Pure.

Its shapes, from systemd 252 and its documentation: a field's value is a string; an array of byte values when it is not UTF-8 or holds
control characters; an array of such values when the entry has the field several times; null when it is too large.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_STARTED = "39f53479d3a045ac8e11786248231fbf"
"""The message id by which the service manager says that a unit has started (systemd.journal-fields, sd-messages)."""

FIELDS = "MESSAGE,MESSAGE_ID,UNIT,_PID"
"""The fields that are asked for; the cursor and the time come with every entry."""


@dataclass(frozen=True, slots=True)
class Record:
    """An entry: its message as one line with its end (empty: it has none), its cursor, and when the unit started if it says that (Unix seconds)."""

    line: bytes
    cursor: str
    started: float | None = None


def parse(text: bytes) -> Record | None:
    """The entry of a line; None when it is none (a word of journalctl's own, one that was cut)."""
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not isinstance(cursor := entry.get("__CURSOR"), str):
        return None
    return Record(_line(entry.get("MESSAGE")), cursor, _started(entry))


def _line(message: Any) -> bytes:
    """One message is one line, whatever is in it: who can put a line end into a message must not make a line of his own with it."""
    raw = _bytes(message)
    return b" ".join(raw.splitlines()) + b"\n" if raw else b""


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, list):
        if all(isinstance(item, int) and 0 <= item <= 255 for item in value):
            return bytes(value)
        return b" ".join(_bytes(item) for item in value if not isinstance(item, list) or all(isinstance(one, int) for one in item))
    return b""


def _started(entry: dict[str, Any]) -> float | None:
    if entry.get("MESSAGE_ID") != _STARTED or entry.get("_PID") != "1" or "UNIT" not in entry:
        return None
    try:
        return int(entry["__REALTIME_TIMESTAMP"]) / 1e6
    except (KeyError, TypeError, ValueError):
        return None
