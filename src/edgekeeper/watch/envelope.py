"""What a recorded log is wrapped in, and the service's own lines out of it. Pure.

Known: Docker's json-file, ``docker logs -t``, CRI (containerd, CRI-O, podman's k8s-file), ``journalctl -o json``, and plain lines.
Docker and CRI cut a line of more than 16 KiB into parts; they are one line again before anybody looks at them: else what a client
had put behind the cut would look like the beginning of a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from edgekeeper.watch.stamp import Calendar, iso, stamp

__all__ = ["ENVELOPES", "Envelope", "Part", "recognise", "unescape"]

_JSON_FILE = re.compile(rb'\{"log":"')
_JSON_TAIL = re.compile(rb'\\n","stream":"std[^\n]*')  # begins with a literal: 8 times as fast as with an optional one
_DOCKER_T = re.compile(rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d) ", re.MULTILINE)
_CRI = re.compile(rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) (std(?:out|err)) ([FP])(?: |$)", re.MULTILINE)
_ESCAPE = re.compile(rb"\\(u[0-9a-fA-F]{4}|[\x01-\xff])")
_SIMPLE: Final = ((rb"\"", b'"'), (rb"\u003c", b"<"), (rb"\u003e", b">"), (rb"\u0026", b"&"), (rb"\t", b"\t"), (rb"\/", b"/"))


@dataclass(frozen=True, slots=True)
class Part:
    """One record: its text without an end, whether the line ends with it, and what its parts are told from others' by."""

    text: bytes
    ends: bool = True
    stream: bytes = b""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One way to wrap lines.

    ``part`` takes one raw line apart. ``bulk`` does it to a whole block at once and keeps the number of lines; None when the block
    holds something that only ``part`` gets right. ``stamp`` is when a raw line was written, by its envelope.
    """

    name: str
    fits: Callable[[bytes], bool]
    part: Callable[[bytes], Part]
    bulk: Callable[[bytes], bytes | None]
    stamp: Callable[[bytes, Calendar], float | None]


def recognise(lines: Iterable[bytes]) -> Envelope:
    """The envelope of a log by some of its first lines; where they disagree, that of most of them (the first may be cut)."""
    votes = {envelope.name: 0 for envelope in ENVELOPES}
    for line in lines:
        fitting = next((envelope for envelope in ENVELOPES if envelope.fits(line)), None)
        if fitting is not None:
            votes[fitting.name] += 1
    return max(ENVELOPES, key=lambda envelope: votes[envelope.name])


def unescape(text: bytes) -> bytes:
    """The inside of JSON strings as it was before; many lines at once. What would end a line inside of one becomes a blank."""
    if b"\\" not in text:
        return text
    text = text.replace(rb"\\", b"\0")  # JSON holds no zero byte, so one can stand for a backslash until the other escapes are done
    for escaped, meant in _SIMPLE:
        text = text.replace(escaped, meant)
    if b"\\" in text:
        text = _ESCAPE.sub(_meant, text)
    return text.replace(b"\0", b"\\")


def _meant(found: re.Match[bytes]) -> bytes:
    what = found[1]
    if what[:1] == b"u" and len(what) == 5:
        char = chr(int(what[1:], 16))
        return b" " if char in "\0\n\r" else char.encode("utf-8", "replace")
    return {b"n": b" ", b"r": b" ", b"b": b"\b", b"f": b"\f"}.get(what, what)


# Docker's json-file: {"log":"text\n","stream":"stderr","time":"2026-09-07T06:58:01.123456789Z"}, Go's escapes inside


def _json_file_part(line: bytes) -> Part:
    members = _loaded(line)
    log = members.get("log")
    if not isinstance(log, str):
        return Part(line)
    return Part(_flat(log.removesuffix("\n").encode("utf-8", "replace")), log.endswith("\n"), str(members.get("stream")).encode("utf-8", "replace"))


def _json_file_bulk(block: bytes) -> bytes | None:
    records = block.count(b'","stream":"std')
    if records != block.count(b'\\n","stream":"std') or records != block.count(b'{"log":"') or records != block.count(b"\n"):
        return None
    return unescape(_JSON_TAIL.sub(b"", block).replace(b'{"log":"', b""))


def _json_file_stamp(line: bytes, _calendar: Calendar) -> float | None:
    at = line.rfind(b'"time":"')
    return iso(line[at + 8 :]) if at >= 0 else None


# docker logs -t: nine digits behind the second tell its stamp from one that the service itself writes


def _docker_t_part(line: bytes) -> Part:
    found = _DOCKER_T.match(line)
    return Part(line[found.end() :] if found else line)


def _docker_t_bulk(block: bytes) -> bytes:
    return _DOCKER_T.sub(b"", block)


def _first_stamp(line: bytes, _calendar: Calendar) -> float | None:
    return iso(line)


# CRI: 2026-09-07T04:55:12.204112345Z stdout P text; P is a part, F its last or only one


def _cri_part(line: bytes) -> Part:
    found = _CRI.match(line)
    return Part(line[found.end() :], found[2] == b"F", found[1]) if found else Part(line)


def _cri_bulk(block: bytes) -> bytes | None:
    if b" stdout P" in block or b" stderr P" in block:
        return None
    return _CRI.sub(b"", block)


# journalctl -o json: MESSAGE is a string, an array of bytes when it is not UTF-8, null when it is too long


def _journal_part(line: bytes) -> Part:
    message = _loaded(line).get("MESSAGE")
    if isinstance(message, list):
        return Part(_flat(bytes(byte for byte in message if isinstance(byte, int) and 0 <= byte <= 255)))
    return Part(_flat(message.encode("utf-8", "replace")) if isinstance(message, str) else b"")


def _journal_stamp(line: bytes, _calendar: Calendar) -> float | None:
    value = _loaded(line).get("__REALTIME_TIMESTAMP")
    return int(value) / 1e6 if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20 else None


# plain lines


def _plain_part(line: bytes) -> Part:
    return Part(line)


def _whole(block: bytes) -> bytes:
    return block


def _none(_block: bytes) -> None:
    return None


def _any(_line: bytes) -> bool:
    return True


def _is_journal(line: bytes) -> bool:
    return line.startswith(b"{") and b'"__REALTIME_TIMESTAMP"' in line


def _is_json_file(line: bytes) -> bool:
    return _JSON_FILE.match(line) is not None and b'"time":"' in line


def _is_cri(line: bytes) -> bool:
    return _CRI.match(line) is not None


def _is_docker_t(line: bytes) -> bool:
    return _DOCKER_T.match(line) is not None


def _loaded(line: bytes) -> dict[str, Any]:
    try:
        loaded = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _flat(text: bytes) -> bytes:
    return text.replace(b"\n", b" ")


ENVELOPES: Final = (
    Envelope("docker json-file", _is_json_file, _json_file_part, _json_file_bulk, _json_file_stamp),
    Envelope("journald json", _is_journal, _journal_part, _none, _journal_stamp),
    Envelope("cri", _is_cri, _cri_part, _cri_bulk, _first_stamp),
    Envelope("docker logs -t", _is_docker_t, _docker_t_part, _docker_t_bulk, _first_stamp),
    Envelope("lines", _any, _plain_part, _whole, stamp),
)
"""All that are known, the most telling first."""
