"""The sources of members that there are; a new one is a file in ``membership/`` and a line here."""

from __future__ import annotations

from edgekeeper.config.dns import MembersFrom
from edgekeeper.membership.dns import DnsSource
from edgekeeper.membership.local import FileSource, StaticSource
from edgekeeper.ports import Clock, Source


def source_of(members: MembersFrom, clock: Clock) -> Source:
    """The one source that the config names (it has exactly one)."""
    if members.static is not None:
        return StaticSource(members.static, clock)
    if members.file is not None:
        return FileSource(members.file, clock)
    assert members.dns is not None  # noqa: S101
    return DnsSource(members.dns, clock)
