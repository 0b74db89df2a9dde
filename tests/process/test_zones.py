"""Zones by the members' endpoint, by SOA and by a catalog zone; a serial that changes throws cached answers away."""

from __future__ import annotations

import asyncio
import http.server
import json
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgekeeper.config.dns import Zones
from edgekeeper.dns import zones as unit
from edgekeeper.dns.zones import ZoneReader
from edgekeeper.model.backend import Member
from edgekeeper.probe.packet import parse, question

from .edge import Edge, edge, until

HERE = Member("ns-a", "127.0.0.1", 5353)


class Endpoint:
    """A member's ``zones`` endpoint; ``status`` and ``body`` are what it answers."""

    def __init__(self) -> None:
        self.status, self.body, self.tokens = 200, b"", []  # type: tuple[int, bytes, list[str | None]]
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.tokens.append(self.headers.get("Authorization"))
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *_: object) -> None:
                return

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def serve(self, **zones: int) -> None:
        """These zones with these serials, below ``example.``."""
        self.body = json.dumps(
            {"node": "ns-a", "zones": [{"name": f"{name}.example", "serial": serial, "type": "primary"} for name, serial in zones.items()]}
        ).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "DEADLINE_S", 1.0)


def read(made: ZoneReader, *members: Member) -> tuple[dict[str, int | None], tuple[str, ...]]:
    found = asyncio.run(made.read(members or (HERE,)))
    return dict(found.serials), found.notes


# the sources, one by one ------------------------------------------------------------------


def test_the_endpoint_is_asked_with_its_token_and_what_it_cannot_say_changes_nothing(endpoint: Endpoint, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("the-token-of-the-members\n")
    token.chmod(0o600)
    made = ZoneReader(Zones.model_validate({"poll": {"url": f"http://{{member}}:{endpoint.port}/zones", "token_file": str(token)}}), proxy=False)
    endpoint.serve(a=1, b=2)
    assert read(made) == ({"a.example.": 1, "b.example.": 2}, ())
    assert endpoint.tokens == ["Bearer the-token-of-the-members"]
    good = endpoint.body
    for status, body in ((500, good), (200, b"{"), (200, b'{"zones": []}'), (302, good), (401, b"")):
        endpoint.status, endpoint.body = status, body
        found, notes = read(made)
        assert found == {"a.example.": 1, "b.example.": 2}
        assert len(notes) == 1
        assert "the-token" not in notes[0]
    token.chmod(0o644)
    assert "chmod 600" in read(made)[1][0]


def test_a_member_without_the_endpoint_is_known_as_such(endpoint: Endpoint) -> None:
    made = ZoneReader(Zones.model_validate({"static": ["s.example"], "poll": {"url": f"http://{{member}}:{endpoint.port}/zones"}}), proxy=False)
    endpoint.status = 404
    assert read(made) == ({"s.example.": None}, ())
    assert made.silent == {HERE.address}


def test_a_member_that_is_not_there_keeps_its_zones(endpoint: Endpoint) -> None:
    made = ZoneReader(Zones.model_validate({"poll": {"url": f"http://{{member}}:{endpoint.port}/zones"}}), proxy=False)
    endpoint.serve(a=1)
    away = Member("ns-b", "127.0.0.99", 5353)
    found, notes = read(made, HERE, away)
    assert found == {"a.example.": 1}
    assert "127.0.0.99" in notes[0]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Edge]:
    with edge(tmp_path) as found:
        yield found


def test_soa_and_catalog_of_a_real_server(made: Edge) -> None:
    port = made.member_ports[0]
    member = Member("ns-a", "127.0.0.1", port)
    wanted = {"static": ["s.example"], "soa": True, "catalog": [{"zone": "catalog.example", "server": f"127.0.0.1:{port}"}]}
    reader = ZoneReader(Zones.model_validate(wanted), proxy=False)
    made.tell("ns-a", "zones a.example b.example")
    made.tell("ns-a", "serial 7")
    assert read(reader, member) == ({"a.example.": 7, "b.example.": 7, "s.example.": 7}, ())
    made.tell("ns-a", "mode refused")
    assert read(reader, member)[0] == {"a.example.": 7, "b.example.": 7, "s.example.": 7}
    made.tell("ns-a", "mode normal")
    made.tell("ns-a", "zones b.example")
    made.tell("ns-a", "serial 8")
    assert read(reader, member)[0] == {"b.example.": 8, "s.example.": 8}


def test_a_catalog_that_is_not_transferred_is_a_note_and_not_an_empty_set(made: Edge) -> None:
    port = made.member_ports[0]
    for zone, server in (("other.example", port), ("catalog.example", 1)):
        reader = ZoneReader(Zones.model_validate({"catalog": [{"zone": zone, "server": f"127.0.0.1:{server}"}]}), proxy=False)
        reader.known = {f"catalog {zone}.": {"a.example.": None}}
        found, notes = read(reader, Member("ns-a", "127.0.0.1", port))
        assert found == {"a.example.": None}
        assert "failed" in notes[0]
        assert "its last 1 stay" in notes[0]


# through dnsdist --------------------------------------------------------------------------


def serial_of(port: int, zone: str) -> int | None:
    """The serial that a client is told."""
    with socket.socket(type=socket.SOCK_DGRAM) as asker:
        asker.settimeout(1)
        try:
            asker.sendto(question(secrets.randbelow(65536), zone, "SOA"), ("127.0.0.1", port))
            return parse(asker.recv(4096)).serial
        except (OSError, ValueError):
            return None


def serials(made: Edge, number: int) -> None:
    for name in made.names:
        assert made.tell(name, f"serial {number}") == "ok"


Source = Callable[[Edge, "Endpoint"], tuple[str, Callable[[int], None]]]


def by_poll(made: Edge, endpoint: Endpoint) -> tuple[str, Callable[[int], None]]:
    endpoint.serve(a=1)
    return f"zones: {{poll: {{url: 'http://{{member}}:{endpoint.port}/zones', every: 1s}}}}", lambda number: endpoint.serve(a=number)


def by_soa(made: Edge, endpoint: Endpoint) -> tuple[str, Callable[[int], None]]:
    return "zones: {static: [a.example], soa: true, every: 1s}", lambda _: None


def by_catalog(made: Edge, endpoint: Endpoint) -> tuple[str, Callable[[int], None]]:
    made.tell("ns-a", "zones a.example")
    server = f"127.0.0.1:{made.member_ports[0]}"
    return f"zones: {{catalog: [{{zone: catalog.example, server: '{server}'}}], soa: true, every: 1s}}", lambda _: None


@pytest.mark.parametrize("source", [by_poll, by_soa, by_catalog])
def test_a_serial_that_changes_throws_the_zones_cached_answers_away(made: Edge, endpoint: Endpoint, source: Source) -> None:
    serials(made, 1)
    config, tell = source(made, endpoint)
    made.config.write_text(made.config.read_text() + f"  {config}\n  authoritative_cache: true\n")
    made.run()
    made.wait_ready()
    until(lambda: made.status()["zones"] == {"a.example.": 1}, "the zone is known")
    until(lambda: "is in force" in made.status()["last_decision"], "and routed")
    until(lambda: serial_of(made.port, "a.example.") == 1, "it is answered")
    if source is by_poll:  # nobody but the endpoint knows: the cache answers until it says so
        serials(made, 2)
        assert serial_of(made.port, "a.example.") == 1
        tell(2)
    else:
        serials(made, 2)
    until(lambda: serial_of(made.port, "a.example.") == 2, "the new one is answered", 10)
    flushed = [line for line in (made.folder / "state/journal.jsonl").read_text().splitlines() if "cache.flushed" in line]
    assert len(flushed) == 1


def test_a_new_supervisor_does_not_forget_zones_that_it_cannot_ask_for(made: Edge, endpoint: Endpoint) -> None:
    """Otherwise their questions go to the resolvers until a member tells of them again."""
    config, _ = by_poll(made, endpoint)
    made.config.write_text(made.config.read_text() + f"  {config}\n")
    run = made.run()
    before = made.wait_ready()
    until(lambda: made.status()["zones"] == {"a.example.": 1}, "the zone is known")
    until(lambda: "is in force" in made.status()["last_decision"], "and routed")
    until((made.folder / "state/dns/zones.json").exists, "and remembered")
    generation = made.status()["engine"]["generation"]
    endpoint.status = 500
    run.kill()
    run.wait()
    run = made.run()
    until(lambda: made.status().get("adopted") and "zones" in made.status()["alarms"], "adopted, and it knows that it cannot ask")
    status = made.status()
    assert (status["engine"]["pid"], status["engine"]["generation"]) == (before["engine"]["pid"], generation)
    assert status["zones"] == {"a.example.": 1}
    run.send_signal(signal.SIGHUP)
    until(lambda: "SIGHUP" in made.said(), "it was heard")
    assert made.status()["zones"] == {"a.example.": 1}
    assert made.status()["engine"]["generation"] == generation
