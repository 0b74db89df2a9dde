"""What running keepalived wrote when they were sent SIGUSR1 (2.2.7 and 2.3.4, each with three VIPs in a namespace), whole and torn."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.keepalived import FEATURES, of, root_of

from edgekeeper.engines.keepalived.dump import Dump, difference, parse
from edgekeeper.engines.keepalived.topology import Topology

DATA = Path(__file__).parent / "data"
LONG = "a" * 63
ASKED: dict[str, Any] = {
    "node": "edge-a",
    "nodes": {f"edge-{x}": {"address": f"192.0.2.{n}", "address6": f"2001:db8::{n}"} for x, n in (("a", 11), ("b", 12), ("c", 13))},
    "vip": {
        "interface": "eth0",
        "preempt": "300s",
        "advert": "290ms",
        "vips": [
            {"name": "dns", "address": "192.0.2.53/24", "vrid": 53, "probe": {"dns": "health.example."}},
            {"name": "dns6", "address": "2001:db8::53/64", "vrid": 6, "probe": {"tcp": "[::1]:53"}},
            {"name": LONG, "address": "192.0.2.80/32", "vrid": 80, "probe": "none"},
        ],
    },
}
"""What the two were told, in ``of``'s words."""


@cache
def text(version: str) -> str:
    return (DATA / f"dump-{version}.txt").read_text(encoding="utf-8")


def wanted() -> Topology:
    return of(root_of(ASKED), "edge-a", FEATURES["2.3.4"])


def parsed(version: str) -> Dump:
    found = parse(text(version))
    assert found is not None
    return found


@pytest.mark.parametrize("version", ["2.2.7", "2.3.4"])
def test_a_running_keepalived_holds_what_it_was_told(version: str) -> None:
    found = parsed(version)
    assert list(found.instances) == ["dns", "dns6", LONG]
    dns, six, long = found.instances.values()
    assert (dns.state, dns.priority, dns.effective, dns.vrid, dns.interface, dns.advert_s, dns.preempt) == ("MASTER", 254, 254, 53, "eth0", 0.29, True)
    assert (dns.source, dns.addresses, dns.peers, dns.scripts) == ("192.0.2.11", ("192.0.2.53/24",), ("192.0.2.12", "192.0.2.13"), ("dns",))
    assert (six.priority, six.source, six.addresses, six.peers) == (252, "2001:db8::11", ("2001:db8::53/64",), ("2001:db8::12", "2001:db8::13"))
    assert (long.addresses, long.scripts) == (("192.0.2.80/32",), ())
    assert found.commands["dns6"] == "/usr/bin/true vip probe --vip dns6 --tcp [::1]:53 --peers /run/edgekeeper/vip/peers.json"
    assert set(found.commands) == {"dns", "dns6"}
    assert found.paces == {name: {"Interval": 1, "Fall": 3, "Rise": 2} for name in ("dns", "dns6")}
    assert difference(wanted(), found) is None


def test_every_difference_is_told() -> None:
    found, asked = parsed("2.3.4"), wanted()
    dns, six, long = asked.instances
    assert difference(replace(asked, instances=(dns, six)), found) == f"it still holds the instance {LONG}"
    assert difference(replace(asked, instances=(dns, six, long, replace(dns, name="new"))), found) == "it has no instance new"
    for changed, what in (
        ({"priority": 1}, "the priority 254, not 1"),
        ({"vrid": 54}, "the VRID 53, not 54"),
        ({"interface": "eth1"}, "the interface eth0, not eth1"),
        ({"advert_s": 1.0}, "the advert interval 0.29, not 1.0"),
        ({"source": "192.0.2.9"}, "the source 192.0.2.11, not 192.0.2.9"),
        ({"preempt": False}, "the preempt True, not False"),
        ({"address": "192.0.2.53/32"}, "the address ('192.0.2.53/24',), not ('192.0.2.53/32',)"),
        ({"peers": ("192.0.2.12",)}, "the peers ['192.0.2.12', '192.0.2.13'], not ['192.0.2.12']"),
        ({"probe": ("/usr/bin/false",)}, "another track script"),
    ):
        told = difference(replace(asked, instances=(replace(dns, **changed), six, long)), found)  # type: ignore[arg-type]
        assert told == f"its instance dns has {what}"
    for changed in ({"interval": 2}, {"fall": 4}, {"rise": 3}):
        assert difference(replace(asked, script=replace(asked.script, **changed)), found) == "its track script chk_dns is run at another pace"


def test_the_order_of_peers_is_no_difference() -> None:
    asked = wanted()
    turned = tuple(replace(i, peers=i.peers[::-1]) for i in asked.instances)
    assert difference(replace(asked, instances=turned), parsed("2.3.4")) is None


@pytest.mark.parametrize("version", ["2.2.7", "2.3.4"])
def test_a_dump_that_is_torn_anywhere_is_none_or_whole(version: str) -> None:
    whole, found = text(version), parsed(version)
    end = whole.index("------< Interfaces >------") + len("------< Interfaces >------")
    assert [cut for cut in range(end) if parse(whole[:cut]) is not None] == []
    assert all(parse(whole[:cut]) == found for cut in range(end, len(whole), 17))


@pytest.mark.parametrize("version", ["2.2.7", "2.3.4"])
def test_a_dump_without_its_beginning_or_with_a_hole_is_no_exception(version: str) -> None:
    whole = text(version)
    for cut in range(0, len(whole), 197):
        parse(whole[cut:])
        difference(wanted(), parse(whole[:cut] + whole[cut + 61 :]) or Dump({}, {}))


@pytest.mark.parametrize("junk", ["", "\0", "------< VRRP Topology >------\n------< Interfaces >------\n", " VRRP Instance = VI_x\n"])
def test_what_is_no_dump_holds_nothing(junk: str) -> None:
    found = parse(junk)
    assert found is None or found == Dump({}, {})
