"""``journalctl -o export``: a field a line, an empty line after each entry; a field that is no plain text has its length before it. Pure.

``MESSAGE=text`` is the plain form. The other is a line ``MESSAGE``, then eight bytes of length (little endian), that many bytes and a
newline; since the bytes and the length may hold newlines themselves, lines are put together again until there are enough.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from edgekeeper.report import kinds
from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, name
from edgekeeper.report.kinds import Skip

_LIKES = re.compile(rb"(?:__(?:CURSOR|REALTIME_TIMESTAMP|MONOTONIC_TIMESTAMP|SEQNUM|SEQNUM_ID)|_[A-Z][A-Z0-9_]{1,63})=", re.ASCII)
_KEY = re.compile(rb"[A-Z_][A-Z0-9_]{0,63}\Z", re.ASCII)
_WANTED = (b"MESSAGE", b"__REALTIME_TIMESTAMP", b"_SOURCE_REALTIME_TIMESTAMP", b"_HOSTNAME", b"CONTAINER_NAME", b"SYSLOG_IDENTIFIER")
_LONGEST = 1 << 20


@dataclass(slots=True)
class _Entry:
    fields: dict[bytes, bytes] = field(default_factory=dict)
    key: bytes | None = None
    data: bytearray = field(default_factory=bytearray)


class JournaldExport:
    """See the module."""

    name = "journald-export"
    joins = True

    def likes(self, line: bytes) -> bool:
        """A field that the journal itself sets."""
        return _LIKES.match(line) is not None

    def unwrap(self, line: bytes, context: Context) -> bytes | Skip | None:
        """The message once its entry is complete; see ``envelope.Envelope``."""
        entry = context.state.setdefault(self.name, _Entry())
        if entry.key is not None:
            return _binary(entry, line)
        if not line:
            context.state[self.name] = _Entry()
            return _message(entry, context)
        key, equals, value = line.partition(b"=")
        if not _KEY.match(key):
            return Skip(kinds.NOT_THIS_FORMAT)
        if not equals:
            entry.key = key
            entry.data.clear()
        elif key in _WANTED:
            entry.fields[key] = value
        return None

    def end(self, context: Context) -> Sequence[bytes | Skip]:
        """The last entry, whose empty line may be missing."""
        entry = context.state.pop(self.name, None) or _Entry()
        if entry.key is not None:
            return [Skip(kinds.TRUNCATED)]
        last = _message(entry, context)
        return [] if last is None else [last]


def _binary(entry: _Entry, line: bytes) -> Skip | None:
    entry.data += line
    size = int.from_bytes(entry.data[:8], "little") if len(entry.data) >= 8 else None
    if size is not None and len(entry.data) >= 8 + size:
        if entry.key in _WANTED and entry.key is not None:
            entry.fields[entry.key] = bytes(entry.data[8 : 8 + size])
        entry.key = None
        entry.data = bytearray()
        return None
    if len(entry.data) > _LONGEST or (size is not None and size > _LONGEST):
        entry.key = None
        entry.data = bytearray()
        return Skip(kinds.TOO_LONG)
    entry.data += b"\n"
    return None


def _message(entry: _Entry, context: Context) -> bytes | Skip | None:
    fields = entry.fields
    if not fields:
        return None
    at = _micro(fields.get(b"_SOURCE_REALTIME_TIMESTAMP"))
    at = _micro(fields.get(b"__REALTIME_TIMESTAMP")) if at is None else at
    if at is None:
        return Skip(kinds.NO_TIME)
    context.envelope_at = at
    context.tag = name(_text(fields.get(b"CONTAINER_NAME", fields.get(b"SYSLOG_IDENTIFIER", b""))))
    if b"_HOSTNAME" in fields:
        context.node = name(_text(fields[b"_HOSTNAME"]))
    return fields.get(b"MESSAGE")


def _micro(value: bytes | None) -> float | None:
    return None if value is None else stamps.micro(_text(value))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
