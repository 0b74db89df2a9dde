"""What a build can do, from what its --version says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.engines.dnsdist.features import parse
from edgekeeper.errors import MissingError

OLD = """dnsdist 1.7.3 (Lua 5.1.4 [LuaJIT 2.1.0-beta3])
Enabled features: cdb dns-over-tls(openssl) dns-over-https(DOH) dnscrypt ebpf libsodium outgoing-dns-over-https(nghttp2) recvmmsg/sendmmsg systemd
"""
NEW = """dnsdist 2.1.3 (Lua 5.1.4 [LuaJIT 2.1.1761786044])
Enabled features: AF_XDP dns-over-tls(gnutls openssl) dns-over-https(nghttp2) dns-over-quic dns-over-http3 ebpf libsodium yaml
"""


def test_the_oldest_and_the_newest_are_told_apart():
    old, new = parse(OLD), parse(NEW)
    assert (old.version, old.text, old.yaml, old.ebpf) == ((1, 7, 3), "1.7.3", False, True)
    assert old.protocols == ("do53", "dot", "doh")
    assert (old.retry, old.validator, old.lazy, old.bpf_table, old.structured) == (False,) * 5
    assert new.protocols == ("do53", "dot", "doh", "doq", "doh3")
    assert (new.yaml, new.retry, new.validator, new.lazy, new.bpf_table, new.structured) == (True,) * 6


@pytest.mark.parametrize(("version", "retry", "validator"), [("1.9.16", False, False), ("2.0.0", True, False), ("2.0.5", True, False), ("2.1.0", True, True)])
def test_retry_came_with_2_0_and_the_validator_with_2_1(version, retry, validator):
    found = parse(f"dnsdist {version} (Lua)\nEnabled features: yaml\n")
    assert (found.retry, found.validator) == (retry, validator)


def test_a_build_without_a_protocol_has_only_plain_dns():
    found = parse("dnsdist v2.1 (Lua)\nEnabled features: libsodium outgoing-dns-over-https(nghttp2)\n")
    assert found.version == (2, 1, 0)
    assert found.protocols == ("do53",)
    assert not found.ebpf
    assert parse("dnsdist 2.1.3\n").protocols == ("do53",)


def test_something_else_and_something_too_old_are_refused_with_a_way_out():
    with pytest.raises(MissingError, match=r"is not dnsdist's: it said 'HAProxy'; give engine\.binary"):
        parse("HAProxy\nversion 3")
    with pytest.raises(MissingError, match="it said 'nothing'"):
        parse(" \n")
    with pytest.raises(MissingError, match=r"dnsdist 1\.6\.1 is older than 1\.7; install"):
        parse("dnsdist 1.6.1 (Lua)")


@given(st.text())
def test_no_output_breaks_it(text):
    try:
        parse(text)
    except MissingError:
        return
