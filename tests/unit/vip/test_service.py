"""What is printed for a Service: the right annotations, and nothing from outside becomes YAML of its own."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from edgekeeper.config.vip import Vip
from edgekeeper.errors import RefusedError
from edgekeeper.vip.service import service_annotations, service_patch


def vip(name: str = "dns", address: str = "192.0.2.53/24") -> Vip:
    return Vip.model_validate({"name": name, "address": address, "vrid": 53, "interface": "eth0", "probe": "none"})


def read(text: str) -> list[Any]:
    return list(YAML(typ="safe").load_all(text))


DNS, DNS6 = vip(), vip("dns6", "2001:db8::53/64")


def test_each_vip_is_a_patch_of_its_service() -> None:
    assert read(service_patch("kube-vip", (DNS, DNS6))) == [
        {"metadata": {"annotations": {"kube-vip.io/loadbalancerIPs": "192.0.2.53"}}},
        {"metadata": {"annotations": {"kube-vip.io/loadbalancerIPs": "2001:db8::53"}}},
    ]
    assert read(service_patch("metallb", (DNS,))) == [
        {"metadata": {"annotations": {"metallb.io/loadBalancerIPs": "192.0.2.53", "metallb.io/allow-shared-ip": "dns"}}},
    ]


def test_metallb_takes_one_address_of_each_family() -> None:
    assert service_annotations("metallb", (DNS, DNS6))["metallb.io/loadBalancerIPs"] == "192.0.2.53,2001:db8::53"
    with pytest.raises(RefusedError, match="make a Service for each"):
        service_annotations("metallb", (DNS, vip("api", "192.0.2.60/24")))
    assert service_annotations("kube-vip", (DNS, vip("api", "192.0.2.60/24"))) == {"kube-vip.io/loadbalancerIPs": "192.0.2.53,192.0.2.60"}


@pytest.mark.parametrize("provider", ["keepalived", "other\x1b[2J"])
def test_others_have_no_annotations(provider: str) -> None:
    with pytest.raises(RefusedError) as caught:
        service_annotations(provider, (DNS,))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ['x"\n---\nkind: Secret', "x\u2028y: z", "on", "x: y #"])
def test_a_name_stays_a_name(name: str) -> None:
    hostile = DNS.model_copy(update={"name": name})
    documents = read(service_patch("metallb", (hostile,)))
    assert documents == [{"metadata": {"annotations": {"metallb.io/loadBalancerIPs": "192.0.2.53", "metallb.io/allow-shared-ip": name}}}]
