"""What an answer from outside proves: a certificate for the host, and a backend that sees who asks."""

from __future__ import annotations

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from edgekeeper.expose.proof import Answer, Proof, _judge, not_for

KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(*names: str, common: str = "common.example") -> bytes:
    """DER, with these alternative names; without the extension when there is none."""
    begin = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])
    made = x509.CertificateBuilder(name, name, KEY.public_key(), 7, begin, begin + dt.timedelta(days=30))
    if names:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
    return made.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize(
    ("names", "host", "ok"),
    [
        (["git.example"], "git.example", True),
        (["other.example", "GIT.example"], "git.example", True),
        (["*.example"], "git.example", True),
        (["*.example"], "a.git.example", False),
        (["*.example"], "example", False),
        (["*"], "git", False),
        (["*.git.example"], "git.example", False),
        (["git.example.evil.example"], "git.example", False),
        (["it.example"], "git.example", False),
        (["proxy.example"], "git.example", False),
    ],
)
def test_a_certificate_is_for_the_names_that_it_lists(names, host, ok):
    assert (not_for(certificate(*names), host) is None) == ok


def test_the_common_name_proves_nothing():
    assert "no name at all" in (not_for(certificate(common="git.example"), "git.example") or "")


def test_without_a_certificate_there_is_no_proof():
    assert not_for(None, "git.example") == not_for(b"", "git.example") == "no certificate was shown"


def test_whose_certificate_it_is_instead_is_told_safely_and_what_may_be_the_reason():
    why = not_for(certificate("proxy.example", "b.example", "c.example", "d.example"), "git.example") or ""
    assert why.startswith("the certificate is for proxy.example, b.example, c.example: something else than the backend answers")
    assert "listen_port" in why
    assert "\x1b" not in (not_for(certificate("a\x1b[2J.example"), "git.example") or "")


# whom the backend sees ------------------------------------------------------------------------

WHOAMI = "Hostname: whoami-0\nIP: 127.0.0.1\nIP: 10.42.0.7\nRemoteAddr: 10.42.0.1:41234\nGET /whoami HTTP/1.1\nX-Forwarded-For: {}\nX-Real-Ip: {}\n"


@pytest.mark.parametrize(
    "told",
    [
        "192.0.2.7",
        "client 192.0.2.7\nport 4711",
        "you are 192.0.2.7.",
        '{"ip":"192.0.2.7"}',
        "RemoteAddr: 192.0.2.7:4711",
        WHOAMI.format("192.0.2.7", "192.0.2.7"),
        "X-Forwarded-For: 10.42.0.1, 192.0.2.7",
    ],
)
def test_a_backend_that_names_this_client_sees_its_clients(told):
    assert _judge("proxy", 5.0, "192.0.2.7", told) == Answer("proxy", True, "", 5.0, "192.0.2.7")


@pytest.mark.parametrize("told", ["2001:db8::7", "2001:DB8:0:0::7", "RemoteAddr: [2001:db8::7]:4711"])
def test_an_address_of_ipv6_is_the_same_however_it_is_written(told):
    assert _judge("proxy", 5.0, "2001:db8::7", told) == Answer("proxy", True, "", 5.0, "2001:db8::7")


@pytest.mark.parametrize("own", ["192.0.2.7", "10.0.0.7"])
@pytest.mark.parametrize("told", ["100.64.0.9", WHOAMI.format("100.100.3.4", "100.100.3.4")])
def test_an_address_of_the_mesh_is_no_client(own, told):
    answer = _judge("proxy", 5.0, own, told)
    assert not answer.ok
    assert "an address of the mesh" in answer.why
    assert answer.seen in ("100.64.0.9", "100.100.3.4")


@pytest.mark.parametrize(
    ("own", "told", "seen"),
    [
        ("192.0.2.7", "10.0.0.2", "10.0.0.2"),  # the router with masquerading
        ("10.0.0.7", "10.0.0.2", "10.0.0.2"),
        ("192.0.2.7", "198.51.100.2", "198.51.100.2"),  # nothing makes another of a public address
        ("::1", "127.0.0.1", "127.0.0.1"),
        ("2001:db8::7", "fd00::2", "fd00::2"),
        ("192.0.2.7", WHOAMI.format("10.42.0.1", "10.42.0.1"), "127.0.0.1"),
    ],
)
def test_a_backend_that_sees_somebody_else_does_not_see_its_clients(own, told, seen):
    answer = _judge("proxy", 5.0, own, told)
    assert (answer.ok, answer.seen) == (False, seen)
    assert f"the backend sees {seen} and not {own}" in answer.why


def test_a_public_address_may_be_this_one_behind_a_nat():
    answer = _judge("proxy", 5.0, "10.0.0.7", WHOAMI.format("198.51.100.2", "198.51.100.2"))
    assert (answer.ok, answer.seen) == (True, "198.51.100.2")
    assert "is there NAT between?" in answer.why


@pytest.mark.parametrize("told", ["", "hello", "12:34:56", "1.2.3", "a:b", "version 1.2"])
def test_an_answer_without_an_address_proves_nothing(told):
    assert _judge("proxy", 5.0, "192.0.2.7", told) == Answer("proxy", False, "the echo path's answer holds no address", 5.0)


# all addresses of a host together -------------------------------------------------------------


def test_every_address_must_answer_and_there_must_be_one():
    good, bad = Answer("192.0.2.1:443", True, "", 41.2), Answer("192.0.2.2:443", False, "refused")
    assert Proof("a.example", (good,)).ok
    assert not Proof("a.example", (good, bad)).ok
    assert not Proof("a.example", (), "it has no address in the DNS").ok
    assert Proof("a.example", (), "it has no address in the DNS").text == "it has no address in the DNS"
    assert Proof("a.example", (good,)).text == "answers in 41 ms (192.0.2.1:443)"
    assert Proof("a.example", (good, Answer("192.0.2.3:443", True, "", 99.9))).text == "answers in 100 ms (all 2 addresses)"
    assert Proof("a.example", (good, bad, bad)).text == "192.0.2.2:443: refused; 192.0.2.2:443: refused"
