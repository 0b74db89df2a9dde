from __future__ import annotations

from dataclasses import replace

import pytest

from edgekeeper.vip.leases import Announced, Lease, Service, addresses_of, lease_of, of_kube_vip, of_metallb, told_addresses

NOW = 1000.0
DNS = Service(("edge", "dns"), frozenset({"192.0.2.53"}), ("edge", "kubevip-dns"))
WEB = Service(("edge", "web"), frozenset({"192.0.2.80", "2001:db8::80"}), ("edge", "kubevip-web"))
SHARED = Lease(("kube-system", "plndr-svcs-lock"), "node-a", 5.0, NOW - 1.0, witnessed=True, since=17.0)


def test_one_lease_for_all_services_and_one_for_a_service_alone_which_counts_more() -> None:
    own = replace(SHARED, key=("edge", "kubevip-web"), holder="node-b")
    found = of_kube_vip([DNS, WEB], [SHARED, own], NOW)
    assert {address: owner.node for address, owner in found.items()} == {"192.0.2.53": "node-a", "192.0.2.80": "node-b", "2001:db8::80": "node-b"}
    assert (found["192.0.2.53"].since, found["192.0.2.53"].age_s) == (17.0, 1.0)
    assert found["192.0.2.53"].why == "node-a holds the Lease kube-system/plndr-svcs-lock, renewed 1 s ago"


def test_a_lease_that_was_not_renewed_for_its_duration_by_our_clock_has_no_owner_and_its_age_is_told() -> None:
    assert of_kube_vip([DNS], [replace(SHARED, seen=NOW - 4.9)], NOW)["192.0.2.53"].node == "node-a"
    late = of_kube_vip([DNS], [replace(SHARED, seen=NOW - 40.0)], NOW)["192.0.2.53"]
    assert (late.node, late.age_s) == (None, 40.0)
    assert late.why == "the Lease kube-system/plndr-svcs-lock of node-a has not been renewed for 40 s and lasts 5 s: nobody may hold it"
    assert of_kube_vip([DNS], [replace(SHARED, holder="")], NOW)["192.0.2.53"].why == "nobody holds the Lease kube-system/plndr-svcs-lock"


@pytest.mark.parametrize(("stamped_s", "word"), [(300.0, "was renewed 300 s ago"), (-60.0, "will be renewed in 60 s")])
def test_the_clock_of_another_machine_decides_nothing(stamped_s: float, word: str) -> None:
    """A holder whose clock is wrong is the owner once it was seen to renew, and is none once it was not for the Lease's duration."""
    first = replace(SHARED, stamped_s=stamped_s, witnessed=False, seen=NOW)
    assert first.doubtful(NOW)
    told = of_kube_vip([DNS], [first], NOW)["192.0.2.53"]
    assert told.node is None
    assert word in told.why
    assert of_kube_vip([DNS], [replace(first, witnessed=True)], NOW)["192.0.2.53"].node == "node-a"
    assert not first.doubtful(NOW + 5.0)
    assert of_kube_vip([DNS], [first], NOW + 5.0)["192.0.2.53"].node is None
    fresh = replace(first, stamped_s=1.0)
    assert of_kube_vip([DNS], [fresh], NOW)["192.0.2.53"].node == "node-a"
    assert of_kube_vip([DNS], [fresh], NOW + 4.1)["192.0.2.53"].node is None


def test_a_hosts_annotation_counts_only_where_there_is_no_lease() -> None:
    named = replace(DNS, host="node-c")
    assert of_kube_vip([named], [], NOW)["192.0.2.53"].node == "node-c"
    assert "no Lease shows" in of_kube_vip([named], [], NOW)["192.0.2.53"].why
    beside = of_kube_vip([named], [SHARED], NOW)["192.0.2.53"]
    assert beside.node == "node-a"
    assert beside.why.endswith("; its Service still names node-c")
    assert of_kube_vip([DNS], [], NOW)["192.0.2.53"].node is None


def test_the_addresses_that_a_lease_tells_are_its_own_the_control_planes_too() -> None:
    vips = told_addresses(
        {"kube-vip.io/x": '{"version": "v1", "vips": [{"index": 0, "value": "192.0.2.60"}, {"value": "api.example"}]}', "other/x": '{"vips": 3}'}
    )
    assert vips == {"192.0.2.60"}
    assert told_addresses({"kube-vip.io/x": "{", "kube-vip.io/y": '{"vips": [1]}', "kube-vip.io/z": '{"vips": null}'}) == frozenset()
    found = of_kube_vip([], [replace(SHARED, key=("kube-system", "plndr-cp-lock"), addresses=vips)], NOW)
    assert found["192.0.2.60"].node == "node-a"
    assert of_kube_vip([], [replace(SHARED, key=("kube-node-lease", "node-a"), addresses=vips)], NOW) == {}


def test_the_lease_of_a_service() -> None:
    assert lease_of("edge", "dns", "") == ("edge", "kubevip-dns")
    assert lease_of("edge", "dns", "common") == ("edge", "common")
    assert lease_of("edge", "dns", "infra/common") == ("infra", "common")


def test_addresses_are_compared_in_one_way_of_writing() -> None:
    assert addresses_of(["192.0.2.1, 192.0.2.2/32", "2001:DB8:0::1", "0.0.0.0x", ""]) == {"192.0.2.1", "192.0.2.2", "2001:db8::1"}


def test_metallb_names_the_node_and_the_age_of_its_lease() -> None:
    said = Announced(("edge", "dns"), "node-a", 50.0)
    found = of_metallb([DNS, WEB], [said], [], NOW)
    assert (found["192.0.2.53"].node, found["192.0.2.53"].since) == ("node-a", 50.0)
    assert found["192.0.2.80"].node is None
    assert found["192.0.2.80"].why == "no ServiceL2Status names a node that announces Service edge/web"
    old = of_metallb([DNS], [said], [Lease(("kube-node-lease", "node-a"), "node-a", 40.0, NOW - 95.0, witnessed=True)], NOW)["192.0.2.53"]
    assert (old.node, old.age_s) == ("node-a", 95.0)
    assert old.why.endswith("the node's own Lease was renewed 95 s ago, it may be dead")
    both = of_metallb([DNS], [said, replace(said, node="node-b")], [], NOW)["192.0.2.53"]
    assert (both.node, both.why) == (None, "ServiceL2Status name node-a and node-b for Service edge/dns; the newer removes the older")
