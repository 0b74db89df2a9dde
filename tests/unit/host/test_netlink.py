"""What the kernel sends is read by its lengths, and a torn rest is left out."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import addresses, neighbour, netlink, rawip, sysctl


def test_messages_and_attributes_come_out_as_they_went_in() -> None:
    body = netlink.attribute(3, b"eth0\0") + netlink.attribute(0x8000 | 7, b"1234")
    data = struct.pack("=IHHII", 16 + len(body), 16, 0, 0, 0) + body
    assert list(netlink.messages(data + data)) == [(16, body), (16, body)]
    assert netlink.attributes(body) == {3: b"eth0\0", 7: b"1234"}, "the nested flag is no part of the number"
    assert list(netlink.messages(data + data[:-1])) == [(16, body)]
    assert netlink.attributes(body[:-1]) == {3: b"eth0\0"}


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_break_the_readers(noise: bytes) -> None:
    list(netlink.messages(noise))
    netlink.attributes(noise)
    addresses._address(noise, {1: "eth0"})
    addresses._link(noise)
    rawip.stripped(noise)
    neighbour.claimed_by_arp(noise, bytes(4))
    neighbour.claimed_by_advertisement(noise, bytes(16))


def test_a_point_to_point_address_is_the_own_end() -> None:
    body = struct.pack("=BBBBI", 2, 32, 0, 254, 1) + netlink.attribute(1, bytes([192, 0, 2, 1])) + netlink.attribute(2, bytes([192, 0, 2, 2]))
    assert addresses._address(body, {1: "tun0"}) == addresses.Address("tun0", "192.0.2.2", 32, host_scope=True)
    assert addresses._address(body, {}) is None


def test_a_port_that_leaves_its_bridge_is_no_link_that_is_gone() -> None:
    body = struct.pack("=BxHiII", 0, 1, 7, 0x41, 0) + netlink.attribute(3, b"eth0\0")
    assert addresses._link(body) == (7, "eth0", True)
    assert addresses._link(body[:8] + struct.pack("=I", 0x1) + body[12:]) == (7, "eth0", False), "up, but its cable is out"
    assert addresses._link(b"\x07" + body[1:]) is None


def test_an_ipv4_header_with_options_is_stripped_whole() -> None:
    assert rawip.stripped(b"\x46" + bytes(23) + b"vrrp") == b"vrrp"
    assert rawip.stripped(b"\x4f" + bytes(23)) is None
    assert rawip.stripped(b"\x60" + bytes(39)) is None


def test_who_claims_an_address() -> None:
    mac, vip, other = bytes.fromhex("020000000001"), bytes([192, 0, 2, 53]), bytes([192, 0, 2, 54])
    reply = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 2, mac, vip, bytes(6), bytes(4))
    assert neighbour.claimed_by_arp(reply + bytes(18), vip) == mac
    assert neighbour.claimed_by_arp(reply, other) is None
    probe = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, bytes(4), bytes(6), vip)
    assert neighbour.claimed_by_arp(probe, vip) is None, "one who asks claims nothing"
    target = bytes.fromhex("20010db8000000000000000000000053")
    advertisement = bytes([136, 0, 0, 0, 0x60, 0, 0, 0]) + target
    nonce, link = bytes([14, 1]) + bytes(6), bytes([2, 1]) + mac
    assert neighbour.claimed_by_advertisement(advertisement + nonce + link, target) == mac
    assert neighbour.claimed_by_advertisement(advertisement + bytes(8) + link, target) is None, "an option of length 0 ends it"
    assert neighbour.claimed_by_advertisement(advertisement + link, bytes(16)) is None


@pytest.mark.parametrize("interface", ["", ".", "..", "a/b", "../../kernel", "eth 0", "eth0\n", "sixteen-letters-"])
def test_a_setting_is_of_an_interface_and_of_nothing_else(interface: str) -> None:
    with pytest.raises(EdgekeeperError, match="nothing is read or written"):
        sysctl.write("ipv4", interface, "arp_ignore", 1)
    with pytest.raises(EdgekeeperError, match="nothing is read or written"):
        sysctl.read("ipv4", "eth0", interface)
