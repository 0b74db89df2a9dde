from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from edgekeeper.config.dns import MemberEntry
from edgekeeper.errors import ConfigError, MissingError
from edgekeeper.host.clock import SystemClock
from edgekeeper.membership.local import FileSource, StaticSource
from edgekeeper.model.backend import Member

A, B = Member("ns-a", "192.0.2.1", 5353), Member("", "2001:db8::1", 53, ("resolver",))


def test_the_config_is_a_full_snapshot_by_a_person() -> None:
    entries = (MemberEntry.model_validate("ns-a=192.0.2.1"), MemberEntry.model_validate({"host": "2001:db8::1", "port": 53, "pools": ["resolver"]}))
    found = asyncio.run(StaticSource(entries, SystemClock()).read())
    assert found.members == (A, B)
    assert found.by_person


def test_a_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "members.yaml"

    async def read() -> tuple[Member, ...]:
        return (await FileSource(str(file), SystemClock(), MemberEntry).read()).members

    with pytest.raises(MissingError, match="cannot be read"):
        asyncio.run(read())
    file.write_text("members:\n  - ns-a=192.0.2.1\n  - {host: '2001:db8::1', port: 53, pools: [resolver]}\n")
    assert asyncio.run(read()) == (A, B)
    file.write_text("members:\n  - ns-a=192.0.2.1\n  - ns-b=192.0.2.2:0\n")
    with pytest.raises(ConfigError, match=r"members.yaml:3:\d+"):
        asyncio.run(read())
    file.write_text("members: []\n")
    assert asyncio.run(read()) == ()


def test_a_change_between_the_source_and_its_first_wait_is_not_missed(tmp_path: Path) -> None:
    """Else a member that was added while host names were resolved is not seen before the next change."""
    file = tmp_path / "members.yaml"
    file.write_text("members: [ns-a=192.0.2.1]\n")

    async def work() -> tuple[Member, ...]:
        source = FileSource(str(file), SystemClock(), MemberEntry)
        await source.read()
        (tmp_path / "new").write_text("members: [ns-a=192.0.2.1, ns-b=192.0.2.2]\n")
        (tmp_path / "new").replace(file)
        async with asyncio.timeout(2):
            await source.changed()
        return (await source.read()).members

    assert len(asyncio.run(work())) == 2
