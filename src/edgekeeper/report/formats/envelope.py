"""What wraps a line of a log: the containers' runtime (CRI), docker, journald, a stamp before each line. Pure.

An envelope is taken off before the format of the log is recognised. Where a runtime cuts a long line into pieces they are joined again
(each stream of each container for itself); the pieces that wait live in the state of the context, so that an envelope can be used for
any number of sources at once. The line's time is that of its first piece: the moment it was written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from edgekeeper.report import kinds
from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, name
from edgekeeper.report.formats.export import JournaldExport
from edgekeeper.report.formats.jsonline import decode
from edgekeeper.report.formats.pieces import Pieces
from edgekeeper.report.kinds import Skip

LOOK_AT = 200


class Envelope(Protocol):
    """A way of wrapping lines. ``joins`` says that a line may depend on the one before: such a file must not be read in parts."""

    name: str
    joins: bool

    def likes(self, line: bytes) -> bool:
        """Whether the line is certainly wrapped so."""
        ...

    def unwrap(self, line: bytes, context: Context) -> bytes | Skip | None:
        """The line inside; None when it is not complete yet. Sets ``envelope_at`` (and node and tag where told) of the context."""
        ...

    def end(self, context: Context) -> Sequence[bytes | Skip]:
        """What is left when the source ends."""
        ...


class Bare:
    """No envelope at all."""

    name = "none"
    joins = False

    def likes(self, line: bytes) -> bool:
        """Never: it is what is left when no other is recognised."""
        del line
        return False

    def unwrap(self, line: bytes, context: Context) -> bytes | Skip | None:
        """The line as it is."""
        del context
        return line

    def end(self, context: Context) -> Sequence[bytes | Skip]:
        """Nothing."""
        del context
        return ()


_CRI = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([PF])(?::[^ ]*)? ?", re.ASCII)


class Cri:
    """``2026-09-07T04:55:12.104112345Z stdout F line``: containerd and CRI-O. P is a piece, F the last one."""

    name = "cri"
    joins = True

    def likes(self, line: bytes) -> bool:
        """A stamp, a stream and P or F."""
        return _CRI.match(line) is not None

    def unwrap(self, line: bytes, context: Context) -> bytes | Skip | None:
        """See ``Envelope``."""
        match = _CRI.match(line)
        if match is None:
            return Skip(kinds.NOT_THIS_FORMAT)
        stamp, stream, tag = match.groups()
        at = stamps.iso(stamp.decode())
        return Pieces.of(context, "cri").add(stream.decode(), line[match.end() :], at, context, last=tag == b"F")

    def end(self, context: Context) -> Sequence[bytes | Skip]:
        """A piece without its end was cut off."""
        return [Skip(kinds.TRUNCATED) for _ in Pieces.of(context, "cri").left()]


class _DockerLine(msgspec.Struct, gc=False):
    log: str
    time: str
    stream: str = ""


_DOCKER = msgspec.json.Decoder(_DockerLine)


class Docker:
    r"""``{"log":"line\n","stream":"stdout","time":"..."}``: docker's json-file. A log without its newline is a piece (16 KiB)."""

    name = "docker"
    joins = True

    def likes(self, line: bytes) -> bool:
        """An object with a log and a time."""
        if not line.startswith(b'{"log":"'):
            return False
        found = decode(_DOCKER, line)
        return not isinstance(found, Skip)

    def unwrap(self, line: bytes, context: Context) -> bytes | Skip | None:
        """See ``Envelope``."""
        found = decode(_DOCKER, line)
        if isinstance(found, Skip):
            return found
        inner = found.log.removesuffix("\n")
        return Pieces.of(context, "docker").add(found.stream, inner.encode(), stamps.iso(found.time), context, last=len(inner) < len(found.log))

    def end(self, context: Context) -> Sequence[bytes | Skip]:
        """What a container wrote last may have no newline: it is a line."""
        return Pieces.of(context, "docker").left()


class _JournalLine(msgspec.Struct, gc=False):
    realtime: Any = msgspec.field(default=None, name="__REALTIME_TIMESTAMP")
    sent: Any = msgspec.field(default=None, name="_SOURCE_REALTIME_TIMESTAMP")
    host: Any = msgspec.field(default=None, name="_HOSTNAME")
    message: Any = msgspec.field(default=None, name="MESSAGE")
    tag: Any = msgspec.field(default=None, name="SYSLOG_IDENTIFIER")
    container: Any = msgspec.field(default=None, name="CONTAINER_NAME")
    partial: Any = msgspec.field(default=None, name="CONTAINER_PARTIAL_MESSAGE")
    stream: Any = msgspec.field(default=None, name="PRIORITY")


_JOURNAL = msgspec.json.Decoder(_JournalLine)


class Journald:
    """``journalctl -o json``. MESSAGE is a string, or an array of bytes where it is not UTF-8, or null where it is too long."""

    name = "journald"
    joins = True

    def likes(self, line: bytes) -> bool:
        """An object with the journal's own time."""
        if not line.startswith(b"{") or b'"__REALTIME_TIMESTAMP"' not in line:
            return False
        found = decode(_JOURNAL, line)
        return not isinstance(found, Skip) and stamps.micro(found.realtime) is not None

    def unwrap(self, line: bytes, context: Context) -> bytes | Skip | None:
        """See ``Envelope``. The sender's own time is preferred to that of the journal, which may be later."""
        found = decode(_JOURNAL, line)
        if isinstance(found, Skip):
            return found
        at = stamps.micro(found.sent)
        at = stamps.micro(found.realtime) if at is None else at
        if at is None:
            return Skip(kinds.NO_TIME if found.realtime is not None else kinds.MISSING_FIELD)
        message = _bytes(found.message)
        if message is None:
            return Skip(kinds.TOO_LONG if found.message is None else kinds.WRONG_TYPE)
        tag = found.container if isinstance(found.container, str) else found.tag
        context.tag = name(tag) if isinstance(tag, str) else ""
        if isinstance(found.host, str):
            context.node = name(found.host)
        return Pieces.of(context, "journald").add(f"{found.container} {found.stream}", message, at, context, last=found.partial != "true")

    def end(self, context: Context) -> Sequence[bytes | Skip]:
        """A piece without its end was cut off."""
        return [Skip(kinds.TRUNCATED) for _ in Pieces.of(context, "journald").left()]


_STAMPED = re.compile(
    rb"(?=\[pod/|\d{4}-)(?:\[pod/([^\]\s]{1,512})\] )?"
    rb"(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d)) (?!std(?:out|err) [PF](?: |$)))?",
    re.ASCII,
)


class Stamped:
    """``docker logs -t``, ``kubectl logs --timestamps`` and ``--prefix``: the pod in brackets, a stamp of nine digits, or both, then the line."""

    name = "stamped"
    joins = False

    def likes(self, line: bytes) -> bool:
        """A pod, or a stamp of nine digits: no log that we know writes those itself."""
        match = _STAMPED.match(line)
        return match is not None and match.end() > 0

    def unwrap(self, line: bytes, context: Context) -> bytes | Skip | None:
        """See ``Envelope``."""
        match = _STAMPED.match(line)
        if match is None or not match.end():
            return Skip(kinds.NOT_THIS_FORMAT)
        pod, stamp = match.groups()
        context.tag = name(pod.decode("utf-8", "backslashreplace")) if pod else ""
        context.envelope_at = stamps.iso(stamp.decode()) if stamp else None
        return line[match.end() :]

    def end(self, context: Context) -> Sequence[bytes | Skip]:
        """Nothing."""
        del context
        return ()


NONE = Bare()
ENVELOPES: tuple[Envelope, ...] = (Cri(), Docker(), Journald(), JournaldExport(), Stamped())


def recognise_envelope(lines: Sequence[bytes]) -> Envelope:
    """The envelope that most of the first lines are in; ``NONE`` when fewer than half of them are in any."""
    looked = [line for line in lines[:LOOK_AT] if line]
    counted = [(sum(map(one.likes, looked)), one) for one in ENVELOPES]
    most, best = max(counted, key=lambda pair: pair[0])
    return best if most and most * 2 >= len(looked) else NONE


def _bytes(value: Any) -> bytes | None:
    """The text of a message; of several of them (a field may be there twice) the last."""
    if isinstance(value, list) and value and isinstance(value[-1], str | list):
        value = value[-1]
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list) and all(isinstance(x, int) and 0 <= x <= 255 for x in value):
        return bytes(value)
    return None
