"""The baseline's keepalived.conf."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgekeeper.lab.plain_keepalived import KUBEADM, KUBEADM_CHECK, PREEMPT, Check, Plain, Vip, config

VIP = Vip("dns", "192.0.2.53/24", 53)
VIP6 = Vip("dns6", "2001:db8::53/64", 54)
PLAIN = Plain(1, ("192.0.2.12", "2001:db8::12"), (("192.0.2.11", "2001:db8::11"),), (VIP,), "/run/x", check=Check("/run/x/check"))


def test_what_the_field_ran() -> None:
    text = config(PLAIN)
    assert "    priority 190\n    advert_int 1\n    nopreempt\n    unicast_src_ip 192.0.2.12\n    unicast_peer {\n        192.0.2.11\n    }\n" in text
    assert '    script "/run/x/check"\n    interval 1\n    timeout 1\n    fall 3\n    rise 2\n    weight 0\n' in text
    assert "    file /run/x/weight-dns\n    weight -1\n" in text


def test_an_ipv6_vip_speaks_ipv6() -> None:
    text = config(replace(PLAIN, vips=(VIP6,), advert_s=0.1))
    assert "    unicast_src_ip 2001:db8::12\n" in text
    assert "    advert_int 0.1\n" in text
    assert "        2001:db8::53/64 dev eth0\n" in text


def test_preempt() -> None:
    assert "nopreempt" not in config(replace(PLAIN, manner=PREEMPT))


def test_the_numbers_of_the_guide() -> None:
    text = config(replace(PLAIN, node=0, manner=KUBEADM, check=replace(KUBEADM_CHECK, script="/run/x/check")))
    assert "    state MASTER\n" in text
    assert "    priority 101\n" in text
    assert "    interval 3\n    fall 10\n    rise 2\n    weight -2\n" in text
    assert "track_file" not in text


@pytest.mark.parametrize("name", ["", "a b", "a\n}", "a#b", 'a"'])
def test_names_cannot_leave_their_word(name: str) -> None:
    with pytest.raises(ValueError, match="is no word"):
        config(replace(PLAIN, vips=(replace(VIP, name=name),)))
