"""What dnsdist's own check passes and its start then dies of, or runs without: seen before, or proven after."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import hashlib
import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from edgekeeper.engines.dnsdist import certificates
from edgekeeper.engines.dnsdist.topology import Certificate
from edgekeeper.host import owner
from edgekeeper.model.backend import Member

pytestmark = pytest.mark.engine

A = Member("ns-a", "127.0.0.1", 15991)


def port_of(listen):
    return int(listen.rpartition(":")[2])


def certify(folder, name, days=30):
    """A self-signed pair in ``folder``, as the topology knows it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    built = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number(), now - dt.timedelta(days=1), now + dt.timedelta(days))
    signed = built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = serialization.PrivateFormat.PKCS8
    (folder / "tls.crt").write_bytes(signed)
    (folder / "tls.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return Certificate(str(folder / "tls.crt"), str(folder / "tls.key"), hashlib.sha256(signed).hexdigest())


def test_a_start_is_proven_and_its_ports_belong_to_it(dnsdist):
    topology = dnsdist.topology((A,), listen=[f"127.0.0.1:{port_of(dnsdist.dns().listen[0])}", f"[::1]:{port_of(dnsdist.dns().listen[0])}"])
    seat = dnsdist.hands.new_seat(topology)
    assert asyncio.run(dnsdist.hands.preflight(topology, seat, None)) is None
    began = time.monotonic()
    _, pid = dnsdist.start(topology, seat)
    assert time.monotonic() - began < 3
    assert owner.owns(pid, "127.0.0.1", seat.api_port, "tcp")
    assert not owner.owns(os.getpid(), "127.0.0.1", seat.api_port, "tcp")
    assert not owner.owns(pid, "127.0.0.1", 1, "udp")


def test_another_process_in_its_place_is_no_proof(dnsdist, monkeypatch):
    monkeypatch.setattr("edgekeeper.engines.dnsdist.hands.PROVE_DEADLINE_S", 0.5)
    topology = dnsdist.topology((A,))
    seat, pid = dnsdist.start(topology)
    said = asyncio.run(dnsdist.hands.prove(topology, seat, os.getpid()))
    assert said is not None
    assert "does not listen on its private DNS port" in said
    other = dnsdist.topology((A, Member("ns-b", "127.0.0.1", 15992)), listen=[topology.listeners[0].address])
    said = asyncio.run(dnsdist.hands.prove(other, seat, pid))
    assert said == "dnsdist did not prove itself within 0.5 s: the engine does not hold ns-b"


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_a_listen_port_in_use_is_seen_before_the_start(dnsdist, kind):
    topology = dnsdist.topology((A,))
    seat = dnsdist.hands.new_seat(topology)
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", port_of(topology.listeners[0].address)))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        assert dnsdist.check(topology, seat) is None, "dnsdist's own check does not see it"
        said = asyncio.run(dnsdist.hands.preflight(topology, seat, None))
    assert said is not None
    assert "cannot be listened on: Address already in use" in said


@pytest.mark.parametrize("what", ["console_port", "api_port", "private_port"])
def test_a_private_port_in_use_is_seen_before_the_start(newest, what):
    topology = newest.topology((A,))
    seat = newest.hands.new_seat(topology)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        seat = replace(seat, **{what: taken.getsockname()[1]})
        assert newest.check(topology, seat) is None, "dnsdist's own check does not see it"
        said = asyncio.run(newest.hands.preflight(topology, seat, None))
    assert said is not None
    assert "cannot be used: Address already in use" in said


def test_a_bad_console_key_is_seen_before_the_start(dnsdist):
    topology = dnsdist.topology((A,))
    seat = replace(dnsdist.hands.new_seat(topology), console_key=base64.b64encode(b"short").decode())
    said = asyncio.run(dnsdist.hands.preflight(topology, seat, None))
    assert said is not None
    assert "console key" in said


def test_an_address_that_this_machine_has_not_is_seen_before_the_start(dnsdist):
    topology = dnsdist.topology((A,), listen=["192.0.2.1:5353"], acl=["192.0.2.0/24"])
    seat = dnsdist.hands.new_seat(topology)
    assert dnsdist.check(topology, seat) is None, "dnsdist's own check does not see it"
    said = asyncio.run(dnsdist.hands.preflight(topology, seat, None))
    assert said == "192.0.2.1:5353 (do53, UDP) cannot be listened on: Cannot assign requested address"


def test_beside_a_sibling_the_listeners_are_shared_and_the_private_ports_are_not(dnsdist):
    topology = dnsdist.topology((A,))
    seat, _ = dnsdist.start(topology)
    assert asyncio.run(dnsdist.hands.preflight(topology, seat, seat)) is None, "a live change binds nothing"
    beside = dnsdist.hands.new_seat(topology)
    assert asyncio.run(dnsdist.hands.preflight(topology, beside, seat)) is None
    assert asyncio.run(dnsdist.hands.preflight(topology, beside, None)) is not None
    said = asyncio.run(dnsdist.hands.preflight(topology, replace(beside, api_port=seat.api_port), seat))
    assert said is not None
    assert "for the API" in said
    dnsdist.start(topology, beside)


def test_beside_a_sibling_a_listener_of_somebody_else_is_seen(dnsdist):
    topology = dnsdist.topology((A,))
    seat, _ = dnsdist.start(topology)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        wider = dnsdist.topology((A,), listen=[topology.listeners[0].address, f"127.0.0.1:{taken.getsockname()[1]}"])
        said = asyncio.run(dnsdist.hands.preflight(wider, dnsdist.hands.new_seat(wider), seat))
    assert said is not None
    assert "(do53, TCP) cannot be listened on: Address already in use" in said
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        wider = dnsdist.topology((A,), listen=[topology.listeners[0].address, f"127.0.0.1:{taken.getsockname()[1]}"])
        said = asyncio.run(dnsdist.hands.preflight(wider, dnsdist.hands.new_seat(wider), seat))
    assert said is not None
    assert "(do53, UDP) cannot be listened on: Address already in use" in said
    everywhere = dnsdist.topology((A,), listen=[f"0.0.0.0:{port_of(topology.listeners[0].address)}"])
    assert asyncio.run(dnsdist.hands.preflight(everywhere, dnsdist.hands.new_seat(everywhere), seat)) is None


def test_encrypted_listeners_start_and_change_their_certificate_live(dnsdist, tmp_path):
    first = certify(tmp_path, "first.example")
    said = {"tls": {"dir": str(tmp_path), "dot": dnsdist.dns().listen, "doh": dnsdist.dns().listen}, "listen": dnsdist.dns().listen}
    old = dnsdist.topology((A,), certificate=first, **said)
    assert asyncio.run(dnsdist.hands.preflight(old, dnsdist.hands.new_seat(old), None)) is None
    seat, _ = dnsdist.start(old)
    places = [listener.address for listener in old.listeners if listener.protocol in ("dot", "doh")]
    assert [certificates.shown(place, first.chain) for place in places] == [None, None]
    new = dnsdist.topology((A,), certificate=certify(tmp_path, "second.example"), **said)
    assert "still shows another certificate" in (certificates.shown(places[0], first.chain) or "")
    assert asyncio.run(dnsdist.hands.live(old, new, seat)) is None
    assert [certificates.shown(place, first.chain) for place in places] == [None, None]


def test_a_certificate_that_dnsdist_would_die_of_is_seen_before_the_start(dnsdist, tmp_path):
    pair = certify(tmp_path, "edge.example")
    said = {"tls": {"dir": str(tmp_path), "dot": dnsdist.dns().listen}, "listen": dnsdist.dns().listen}
    topology = dnsdist.topology((A,), certificate=pair, **said)
    seat = dnsdist.hands.new_seat(topology)
    (tmp_path / "tls.crt").write_text("garbage")
    assert dnsdist.check(topology, seat) is None, "dnsdist's own check does not see it"
    assert "is not PEM" in (asyncio.run(dnsdist.hands.preflight(topology, seat, None)) or "")
    (tmp_path / "tls.crt").unlink()
    assert "cannot be read: No such file" in (asyncio.run(dnsdist.hands.preflight(topology, seat, None)) or "")


def test_what_the_check_refuses_is_quoted(dnsdist):
    topology = dnsdist.topology((A,))
    wrong = replace(topology.backends[0], address="not-an-address")
    said = dnsdist.check(replace(topology, backends=(wrong,)))
    assert said is not None
    assert said.startswith("dnsdist's check refused: ")
    assert "not-an-address" in said or "not a valid address" in said or "Unable to convert" in said


def test_an_engine_with_ebpf_starts(dnsdist):
    if os.geteuid() != 0:
        pytest.skip("eBPF needs CAP_BPF")
    topology = dnsdist.topology((A,), ebpf={}, dynblocks={"query_rate": 100, "nxdomain_rate": 10})
    assert dnsdist.check(topology) is None
    dnsdist.start(topology)


def test_a_hundred_members_start_in_time_and_fit_into_a_small_machine(dnsdist):
    topology = dnsdist.topology(tuple(Member(f"n{number}", f"127.1.0.{number}", 15991) for number in range(1, 101)))
    begun = time.monotonic()
    _, pid = dnsdist.start(topology)
    assert time.monotonic() - begun < 5
    assert resident_mib(pid) < 1024, "dnsdist's own number of queries under way takes 2.1 to 3.4 GB"


def test_members_that_left_take_their_memory_with_them(newest):
    listen = newest.dns().listen
    both, one = newest.topology((A, Member("ns-b", "127.0.0.1", 15992)), listen=listen), newest.topology((A,), listen=listen)
    seat, pid = newest.start(both)

    def again():
        assert asyncio.run(newest.hands.live(both, one, seat)) is None
        assert asyncio.run(newest.hands.live(one, both, seat)) is None

    again()
    before = resident_mib(pid)
    for _ in range(5):
        again()
    assert resident_mib(pid) - before < 100, "34 MB stay behind with each until Lua happens to collect them"


def resident_mib(pid):
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024
