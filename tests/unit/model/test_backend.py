from __future__ import annotations

import pytest

from edgekeeper.model.backend import Member


@pytest.mark.parametrize(
    ("member", "address", "label"),
    [
        (Member("ns-a", "192.0.2.1", 53), "192.0.2.1:53", "ns-a"),
        (Member("", "192.0.2.1", 53), "192.0.2.1:53", "192.0.2.1:53"),
        (Member("", "2001:db8::1", 5353), "[2001:db8::1]:5353", "[2001:db8::1]:5353"),
    ],
)
def test_a_member_is_written_as_people_and_engines_read_it(member: Member, address: str, label: str) -> None:
    assert (member.address, member.label) == (address, label)
