"""What clients get: who answers them, who is refused, what happens when a member dies or is another machine."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgekeeper.engines.dnsdist.console import Console
from edgekeeper.engines.dnsdist.quote import lua_string
from edgekeeper.model.backend import Member

pytestmark = pytest.mark.engine

TXT, AXFR, IXFR, SOA = 16, 252, 251, 6
NOERROR, SERVFAIL, REFUSED = 0, 2, 5
HEALTH = {"name": "health.example.", "type": "TXT"}


def question(name, kind=TXT, opcode=0):
    wire = b"".join(bytes([len(label)]) + label.encode() for label in name.rstrip(".").split(".") if label) + b"\0"
    return b"\x12\x34" + (opcode << 11 | 0x0100).to_bytes(2, "big") + bytes.fromhex("0001000000000000") + wire + kind.to_bytes(2, "big") + b"\0\1"


def ask(topology, name, kind=TXT, opcode=0, within_s=1.0):
    """The rcode and the TXT of the answer; (None, "") when there was none in time."""
    host, _, port = topology.listeners[0].address.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(within_s)
        asker.sendto(question(name, kind, opcode), (host, int(port)))
        try:
            answer = asker.recv(4096)
        except TimeoutError:
            return None, ""
    sent = question(name, kind, opcode)
    text = answer[len(sent) + 13 :].decode() if int.from_bytes(answer[6:8], "big") else ""
    return answer[3] & 15, text


def member(name, answering, pools=()):
    return Member(name, "127.0.0.1", answering.port, pools)


def up(engine, seat, wanted, within_s=8.0):
    """Wait until exactly these members are up."""
    end = time.monotonic() + within_s
    while True:
        found = {server.name for server in asyncio.run(engine.hands.status(seat)).servers if server.up}
        if found == wanted or time.monotonic() > end:
            return found
        time.sleep(0.05)


def test_each_name_goes_where_the_deepest_zone_says(dnsdist, answerer):
    resolver, authoritative, lan = answerer("resolver"), answerer("authoritative"), answerer("lan")
    members = (member("res", resolver, ("resolver",)), member("auth", authoritative, ("authoritative",)))
    zones = ("example.", "deep.lan.", "odd\\.label.")
    topology = dnsdist.topology(members, zones, forward={"lan.": (member("", lan),), "inner.example.": (member("", lan),)}, health=HEALTH)
    dnsdist.start(topology)
    for name, who in {
        "net.": "resolver",
        "example.": "authoritative",
        "WWW.EXAMPLE.": "authoritative",
        "notexample.": "resolver",
        "host.lan.": "lan",
        "deep.lan.": "authoritative",
        "x.deep.lan.": "authoritative",
        "inner.example.": "lan",
        "a.inner.example.": "lan",
    }.items():
        assert ask(topology, name) == (NOERROR, who), name


@pytest.mark.parametrize("listed", [True, False])
def test_transfers_notify_and_update_are_for_the_listed_only(dnsdist, answerer, listed):
    sources = ["127.0.0.0/8"] if listed else ["192.0.2.0/24"]
    topology = dnsdist.topology((member("a", answerer("a")),), ("example.",), transfer_sources=sources, health=HEALTH)
    dnsdist.start(topology)
    for kind, opcode in ((AXFR, 0), (IXFR, 0), (SOA, 4), (SOA, 5)):
        rcode, _ = ask(topology, "example.", kind, opcode)
        assert rcode == (NOERROR if listed else REFUSED), (kind, opcode)
    assert ask(topology, "example.")[0] == NOERROR


def test_the_secret_reaches_the_member_byte_for_byte(dnsdist, answerer):
    text = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "\"'")
    one = answerer("a")
    topology = dnsdist.topology((member("a", one),), secret=text + "\r\n", proxy_protocol={"secret_env": "X"}, health=HEALTH)
    dnsdist.start(topology)
    assert ask(topology, "net.") == (NOERROR, "a")
    sent = [packet for packet in one.heard if b"\3net" in packet]
    assert sent
    assert bytes([224]) + len(text).to_bytes(2, "big") + text.encode() in sent[0]


def test_with_nobody_up_clients_get_servfail_and_not_silence(dnsdist, answerer):
    gone = answerer("a")
    gone.silent = True
    topology = dnsdist.topology((member("a", gone),), ("example.",), health=HEALTH)
    seat, _ = dnsdist.start(topology)
    assert up(dnsdist, seat, set()) == set()
    assert ask(topology, "net.") == (SERVFAIL, "")
    assert ask(topology, "x.example.") == (SERVFAIL, "")


@pytest.mark.parametrize("rcode", [SERVFAIL, 3, REFUSED])
def test_an_answer_that_resolves_nothing_is_no_health(dnsdist, answerer, rcode):
    well, ill = answerer("a"), answerer("b")
    ill.rcode = rcode
    topology = dnsdist.topology((member("a", well), member("b", ill)), health=HEALTH)
    seat, _ = dnsdist.start(topology)
    assert up(dnsdist, seat, {"a"}) == {"a"}


@pytest.mark.parametrize("rcode", [SERVFAIL, 3, REFUSED])
def test_members_that_all_fail_the_question_stay_up_while_they_live(dnsdist, answerer, rcode):
    """Without must_resolve alone a SERVFAIL would still take them down, on every version."""
    ill, dead = answerer("a"), answerer("b")
    ill.rcode = rcode
    topology = dnsdist.topology((member("a", ill), member("b", dead)), health=HEALTH, forgiving=True)
    seat, _ = dnsdist.start(topology)
    dead.silent = True
    assert up(dnsdist, seat, {"a"}) == {"a"}


def test_expired_answers_are_served_while_nobody_is_up(dnsdist, answerer):
    one = answerer("a")
    topology = dnsdist.topology((member("a", one),), health=HEALTH, stale_ttl="1h")
    seat, _ = dnsdist.start(topology)
    assert ask(topology, "net.") == (NOERROR, "a")
    one.silent = True
    assert up(dnsdist, seat, set()) == set()
    time.sleep(1.2)  # its TTL of 1 s is over
    assert ask(topology, "net.") == (NOERROR, "a")
    assert ask(topology, "never-asked.") == (SERVFAIL, "")


def able(engine, what):
    if not getattr(engine.features, what):
        pytest.skip(f"dnsdist {engine.features.text} cannot: {what}")


def ask_at_once(topology, names, within_s):
    """Ask for all names at the same time; name to what came back."""
    found = {}

    def one(name):
        found[name] = ask(topology, name, within_s=within_s)

    threads = [threading.Thread(target=one, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


NAMES = [f"n{number}.net." for number in range(16)]


def test_a_query_that_a_dying_member_swallowed_is_answered_by_another(dnsdist, answerer):
    able(dnsdist, "retry")
    well, dying = answerer("a"), answerer("b")
    topology = dnsdist.topology((member("a", well), member("b", dying)), health=HEALTH, balancing_factor=0)
    dnsdist.start(topology)
    dying.silent = True
    found = ask_at_once(topology, NAMES, 5)
    assert found == dict.fromkeys(NAMES, (NOERROR, "a"))
    assert any(b"net" in packet for packet in dying.heard), "none of the names was the dying member's: the test says nothing"


def test_a_retry_does_not_hash_to_the_same_member_again(dnsdist, answerer):
    """The member swallows queries and still answers its health: only another policy leads past it."""
    able(dnsdist, "retry")
    well, deaf = answerer("a"), answerer("b")
    deaf.deaf_to = b"\3net"
    topology = dnsdist.topology((member("a", well), member("b", deaf)), health=HEALTH, retry="fast", balancing_factor=0)
    dnsdist.start(topology)
    lost = [name for name, answer in ask_at_once(topology, NAMES, 3).items() if answer[0] is None]
    swallowed = {packet for packet in deaf.heard if b"\3net" in packet}
    assert len(swallowed) > 2
    assert len(lost) < len(swallowed) / 2  # the last of one tick may find the deaf member idle again


def test_retries_stop_at_a_tenth_of_the_queries(newest, answerer):
    """Two members that swallow everything but health: 60 queries are sent, 60 time out, 20 are sent again."""
    swallowing = [answerer("a"), answerer("b")]
    for item in swallowing:
        item.deaf_to = b"\3net"
    topology = newest.topology((member("a", swallowing[0]), member("b", swallowing[1])), health=HEALTH, retry="fast")
    newest.start(topology)
    time.sleep(1.1)  # a quiet second: the budget is at its floor
    host, _, port = topology.listeners[0].address.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        for number in range(60):
            asker.sendto(question(f"n{number}.net."), (host, int(port)))
    time.sleep(4.5)
    sent = sum(b"\3net" in packet for item in swallowing for packet in item.heard)
    assert 60 < sent <= 60 + 2 * 20  # the timeouts may fall on two sides of a refill


def test_another_machine_behind_an_address_is_down_when_identity_is_required(dnsdist, answerer):
    able(dnsdist, "validator")
    right, words, wrong, longer, nameless = (answerer(text) for text in ("ns-a", "ns-b serving", "ns-x", "ns-dd", "whoever"))
    members = (member("ns-a", right), member("ns-b", words), member("ns-c", wrong), member("ns-d", longer), member("", nameless))
    said = {"listen": dnsdist.dns().listen, "health": HEALTH, "identity": "require"}
    topology = dnsdist.topology(members, **said)
    seat, _ = dnsdist.start(topology)
    good = {"ns-a", "ns-b", f"127.0.0.1:{nameless.port}"}
    assert up(dnsdist, seat, good) == good
    lenient = dnsdist.topology(members, enforce_identity=False, **said)
    assert asyncio.run(dnsdist.hands.live(topology, lenient, seat)) is None
    everybody = {*good, "ns-c", "ns-d"}
    assert up(dnsdist, seat, everybody) == everybody
    assert asyncio.run(dnsdist.hands.live(lenient, topology, seat)) is None
    assert up(dnsdist, seat, good) == good


def test_the_first_text_of_any_packet_is_found_or_none(newest, answerer):
    """The walker reads what strangers send: whatever the bytes, it answers and never breaks."""
    a = answerer("ns-a")
    topology = newest.topology((member("ns-a", a),), health=HEALTH, identity="require")
    seat, _ = newest.start(topology)
    body = question("health.example.")
    head = body[:2] + b"\x81\x80" + bytes.fromhex("0001000200000000") + body[12:]
    alias = b"\xc0\x0c\0\5\0\1\0\0\0\1\0\2\xc0\x0c"
    texts = {
        head + alias + b"\xc0\x0c\0\x10\0\1\0\0\0\1\0\5\4ns-a": "ns-a",
        head + alias + b"\6health\0\0\x10\0\1\0\0\0\1\0\x0a\4ns-a\4more": "ns-a",
        head + alias + b"\xc0\x0c\0\x10\0\1\0\0\0\1\0\3\xffns": "ns",
        head + alias + b"\xc0\x0c\0\x10\0\1\0\0\0\1\0\0": "nil",
        head + alias: "nil",
        head[:20]: "nil",
        b"": "nil",
    }

    async def check():
        async with Console(seat.console_port, seat.console_key) as console:
            for packet, text in texts.items():
                assert (await console.run(f"return tostring(ek_first_text({lua_string_of(packet)}))")).strip() == text

    asyncio.run(check())

    @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.one_of(st.binary(max_size=40), st.integers(0, len(head)).map(lambda end: head[:end])), max_size=3).map(b"".join))
    def never_breaks(packet):
        async def once():
            async with Console(seat.console_port, seat.console_key) as console:
                await console.run(f"return tostring(ek_first_text({lua_string_of(packet)}) ~= nil)")

        asyncio.run(once())

    never_breaks()


def lua_string_of(packet):
    return lua_string(packet.decode("latin-1")) if packet.isascii() else '"' + "".join(f"\\{byte:03d}" for byte in packet) + '"'
