"""The sources of members that there are; a new one is a file beside this one and a line here."""

from __future__ import annotations

from edgekeeper.config.members import MembersFrom
from edgekeeper.membership.local import FileSource, StaticSource
from edgekeeper.ports import Clock, Source


def source_of(members: MembersFrom, clock: Clock, default_port: int = 0) -> Source:
    """The one source that the config names (it has exactly one). ``default_port`` counts for members that are written without one."""
    if members.static is not None:
        return StaticSource(members.static, clock, default_port)
    if members.file is not None:
        return FileSource(members.file, clock, members.entry, default_port)
    assert members.dns is not None  # noqa: S101
    from edgekeeper.membership.dns import DnsSource  # noqa: PLC0415 - a resolver is a fifth of a start (95 ms), which most configs do not need

    return DnsSource(members.dns, clock)
