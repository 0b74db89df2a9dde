"""What a change of the topology costs, and the one that is never made."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.keepalived import topology

from edgekeeper.engines.keepalived.live import change, renumbered
from edgekeeper.ports import Cost

TWO = topology({"name": "dns"}, {"name": "web"})
DNS, WEB = TWO.instances


def test_the_same_costs_nothing() -> None:
    assert change(TWO, topology({"name": "dns"}, {"name": "web"})).cost is Cost.NOTHING


def test_everything_else_is_one_reload_with_its_reason() -> None:
    cases = (
        (replace(TWO, instances=(DNS,)), "vips", "VIPs: web removed"),
        (replace(TWO, instances=(DNS, WEB, replace(WEB, name="api"))), "vips", "VIPs: api added"),
        (replace(TWO, instances=(replace(DNS, name="api"), WEB)), "vips", "VIPs: api added, dns removed"),
        (replace(TWO, instances=(DNS, replace(WEB, peers=("192.0.2.13",)))), "peers", "the peers of web are 192.0.2.13"),
        (replace(TWO, instances=(DNS, replace(WEB, priority=9))), "vips", "the priority of web changed"),
        (replace(TWO, instances=(replace(DNS, preempt=30.0), WEB)), "vips", "the preempt of dns changed"),
        (replace(TWO, instances=(replace(DNS, probe=("/x",)), WEB)), "vips", "the probe of dns changed"),
        (replace(TWO, script_user="nobody"), "other", "global settings changed"),
        (replace(TWO, instances=(WEB, DNS)), "other", "global settings changed"),
    )
    for new, kind, why in cases:
        found = change(TWO, new)
        assert (found.cost, found.reason, found.why) == (Cost.RELOAD, kind, why)


def test_a_vip_keeps_its_vrid() -> None:
    assert renumbered(TWO, TWO) is None
    told = renumbered(TWO, replace(TWO, instances=(replace(DNS, vrid=99), WEB)))
    assert told is not None
    assert told.startswith(f"the VRID of {DNS.ip} would become 99 instead of {DNS.vrid}; ")


def test_also_under_another_name_prefix_or_place() -> None:
    for other in (replace(DNS, name="api", vrid=9), replace(DNS, address=f"{DNS.ip}/32", vrid=9)):
        assert renumbered(TWO, replace(TWO, instances=(WEB, other))) is not None
    swapped = (replace(DNS, vrid=WEB.vrid), replace(WEB, vrid=DNS.vrid))
    assert renumbered(TWO, replace(TWO, instances=swapped)) is not None


def test_a_new_vip_and_one_that_is_gone_are_free() -> None:
    new = replace(DNS, name="new", address="192.0.2.99/24", vrid=99)
    assert renumbered(TWO, replace(TWO, instances=(DNS, new))) is None
    assert renumbered(replace(TWO, instances=()), TWO) is None
