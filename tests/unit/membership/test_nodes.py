from __future__ import annotations

from types import SimpleNamespace

import pytest

from edgekeeper.membership.nodes import Machine, members, read
from edgekeeper.model.backend import Member

CP1 = Machine("cp1", (("Hostname", "cp1"), ("InternalIP", "192.0.2.31"), ("InternalIP", "2001:db8::31"), ("ExternalIP", "203.0.113.31")))
CP2 = Machine("cp2", (("InternalIP", "192.0.2.32"),))


def test_each_node_is_one_member_at_its_first_address_of_the_type() -> None:
    assert members([CP2, CP1], "internal", 6443) == ((Member("cp1", "192.0.2.31", 6443), Member("cp2", "192.0.2.32", 6443)), ())
    assert members([CP2, CP1], "external", 443) == ((Member("cp1", "203.0.113.31", 443),), ("node cp2 is left out: it has no ExternalIP address",))


def test_a_name_that_no_member_could_have_is_left_away() -> None:
    assert members([Machine("n" * 64, (("InternalIP", "192.0.2.1"),))], "internal", 1)[0] == (Member("", "192.0.2.1", 1),)


@pytest.mark.parametrize("status", [None, SimpleNamespace(addresses=None), SimpleNamespace(addresses=[])])
def test_a_node_without_addresses_is_read(status: SimpleNamespace | None) -> None:
    assert read(SimpleNamespace(metadata=SimpleNamespace(name="cp1"), status=status)) == Machine("cp1")
