from __future__ import annotations

from types import SimpleNamespace as Thing

import pytest

from edgekeeper.config.expose import Target
from edgekeeper.expose.kinds import Place
from edgekeeper.expose.places import Front, front_of, place_of, service_network

FRONT = Front(("192.0.2.10", "2001:db8::10"), ("198.51.100.7",))


@pytest.mark.parametrize(
    ("said", "front", "place"),
    [
        ({"ip": "2001:DB8::1", "port": 8443}, None, Place("2001:db8::1", 8443)),
        ({"service": "a/b"}, FRONT, Place("192.0.2.10", 443)),
        ({"service": "a/b", "family": "ipv6"}, FRONT, Place("2001:db8::10", 443)),
        ({"service": "a/b", "address": "load-balancer"}, FRONT, Place("198.51.100.7", 443)),
    ],
)
def test_a_target_is_the_address_of_its_kind_and_family(said, front, place):
    assert place_of(Target.model_validate(said), front) == place


def test_what_is_not_there_has_no_place_and_a_reason():
    target = Target.model_validate({"service": "a/b", "address": "load-balancer", "family": "ipv6"})
    assert place_of(target, FRONT) == "Service a/b has no IPv6 load-balancer address; it has 198.51.100.7"
    assert place_of(target, None) == "Service a/b is not there"


def test_of_a_service_only_addresses_count_whatever_is_null():
    assert front_of(Thing(spec=None, status=None)) == Front((), ())
    headless = Thing(spec=Thing(clusterIPs=None, clusterIP="None"), status=Thing(loadBalancer=Thing(ingress=[Thing(ip=None), Thing(ip="fe80::1%eth0")])))
    assert front_of(headless) == Front((), ())


def test_the_network_of_services_is_that_of_the_family_in_use():
    both = ["192.0.2.0/24", "2001:DB8::/112", None, "x"]
    six = [Target.model_validate({"service": "a/b", "family": "ipv6"}), Target.model_validate("192.0.2.1")]
    assert service_network(both, six) == "2001:db8::/112"
    assert service_network(both, []) == "192.0.2.0/24"
    assert service_network(["x"], []) is None
