"""Builds of keepalived by what ``--version`` says."""

from __future__ import annotations

import pytest
from tests.fakes.keepalived import FEATURES

from edgekeeper.engines.keepalived.features import Features, parse
from edgekeeper.errors import MissingError

SAID = """\
Keepalived v{version}

Copyright(C) 2001-2025 Alexandre Cassen, <acassen@gmail.com>

Built with kernel headers for Linux 6.12.21
configure options: --enable-bfd --enable-json

Config options:  {options}

System options:  VSYSLOG MEMFD_CREATE LIBNL3 LVS_64BIT_STATS
"""
DEBIAN = "NFTABLES LVS REGEX VRRP VRRP_AUTH VRRP_VMAC JSON BFD OLD_CHKSUM_COMPAT INIT=systemd SYSTEMD_NOTIFY"
ALONE = "VRRP VRRP_AUTH VRRP_VMAC JSON OLD_CHKSUM_COMPAT INIT=systemd"


def said(version: str, options: str = DEBIAN) -> Features:
    return parse(SAID.format(version=version, options=options))


def test_what_debian_ships_and_a_build_of_vrrp_alone() -> None:
    assert said("2.2.7 (01/16,2022)") == FEATURES["2.2.7"]
    assert said("2.3.4 (06/10,2025)") == FEATURES["2.3.4"]
    assert said("2.4.3 (07/20,2026)", ALONE) == FEATURES["2.4.3"]


def test_what_follows_from_it() -> None:
    old, middle, new = FEATURES.values()
    assert [f.text for f in (old, middle, new)] == ["2.2.7", "2.3.4", "2.4.3"]
    assert [f.hmac for f in (old, middle, new)] == [False, False, True]
    assert [f.says_vrrp for f in (old, middle, new)] == [True, True, False]
    assert [f.test_kills_itself for f in (old, middle, new)] == [True, False, False]
    assert said("2.4", "VRRP BFD").says_vrrp
    assert said("2.4").version == (2, 4, 0)


@pytest.mark.parametrize("output", ["", "dnsdist 2.1.3", "\n\nkeepalived: not found", "Keepalived", "xKeepalived v2.3.4"])
def test_what_is_not_keepalived_is_missing(output: str) -> None:
    with pytest.raises(MissingError, match=r"--version is not keepalived's.*vip\.engine\.binary"):
        parse(output)


@pytest.mark.parametrize("version", ["2.1.5", "1.4.5", "2.0"])
def test_one_that_is_too_old_is_missing(version: str) -> None:
    with pytest.raises(MissingError, match=r"older than 2\.2"):
        said(version)
