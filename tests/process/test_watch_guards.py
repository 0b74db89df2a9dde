"""What forbids a cure, asked of real servers: a health document, what the service needs, a pause file, the calendar."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.process.answering import elsewhere, free_port, served
from tests.process.dockers import Docker

from edgekeeper.errors import MissingError, UsageError
from edgekeeper.host.docker import Docker as Engine
from edgekeeper.host.docker import Which, network
from edgekeeper.model.maintenance import window
from edgekeeper.model.moment import Moment
from edgekeeper.probe.target import parse
from edgekeeper.watch import pause
from edgekeeper.watch.guards import Guards, Health, time_zone

NEED = ("checks.management_connected",)


class Wall:
    """A clock on the wall that shows what it is told."""

    def __init__(self, text: str) -> None:
        self.now = datetime.fromisoformat(text).timestamp()

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        raise NotImplementedError

    def moment(self) -> Moment:
        raise NotImplementedError


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 20))


def document(*, connected: object) -> str:
    return json.dumps({"status": "healthy", "checks": {"management_connected": connected}})


def test_a_document_that_says_false_forbids_and_one_that_says_true_does_not() -> None:
    async def work() -> None:
        async with served() as web:
            url = f"http://127.0.0.1:{web.port}/healthz"
            guards = Guards(health=Health(url, NEED))
            web.body = document(connected=False)
            assert await guards.forbids() == f"checks.management_connected is false in {url}: a service restarted now would serve nothing"
            web.body, web.status = document(connected=True), 503
            assert await guards.forbids() is None
            assert guards.note == f"checks.management_connected is true in {url}"

    run(work())


def test_what_cannot_be_read_forbids_nothing_and_says_so() -> None:
    async def work() -> None:
        async with served() as web, served(hangs=True) as wedged:
            web.body = "x" * 400_000
            for port, says in ((free_port(), "did not answer"), (wedged.port, "within 1.5 s"), (web.port, "longer than may be read")):
                guards = Guards(health=Health(f"http://127.0.0.1:{port}/", NEED))
                began = time.monotonic()
                assert await guards.forbids() is None
                assert time.monotonic() - began < 2.5
                assert guards.note.startswith("what the service needs is unknown, which forbids nothing: ")
                assert says in guards.note

    run(work())


def test_then_what_the_service_needs_decides() -> None:
    async def work() -> None:
        async with served() as web, served(hangs=True) as wedged:
            nobody, here, hung = f"tcp://127.0.0.1:{free_port()}", f"http://127.0.0.1:{web.port}/", f"http://127.0.0.1:{wedged.port}/"
            unread = Health(f"http://127.0.0.1:{free_port()}/", NEED)
            for web.status in (200, 401, 404):
                assert await Guards(health=unread, reachable=[parse(nobody), parse(here)]).forbids() is None
            web.status = 502
            began = time.monotonic()
            said = str(await Guards(health=unread, reachable=[parse(nobody), parse(here), parse(hung)]).forbids())
            assert time.monotonic() - began < 2.5
            assert said.startswith("what the service needs cannot be reached")
            assert all(part in said for part in (f"{nobody}: refused", "HTTP 502", hung))
            web.status, web.body = 200, document(connected=False)
            assert "is false" in str(await Guards(health=Health(here, NEED), reachable=[parse(f"tcp://127.0.0.1:{web.port}")]).forbids())
            web.body = document(connected=True)
            assert "cannot be reached" in str(await Guards(health=Health(here, NEED), reachable=[parse(nobody)]).forbids())

    run(work())


@pytest.mark.root
def test_the_document_is_read_inside_the_container() -> None:
    with elsewhere() as (path, told):

        async def inside() -> str:
            return path

        async def stopped() -> str:
            msg = "container netbird-proxy does not run"
            raise MissingError(msg)

        async def hangs() -> str:
            await asyncio.sleep(60)
            return path

        told.body = document(connected=False)
        url = f"http://127.0.0.1:{told.port}/healthz"
        assert "is false" in str(run(Guards(health=Health(url, NEED, inside)).forbids()))
        for place in (stopped, hangs):
            guards = Guards(health=Health(url, NEED, place))
            assert run(guards.forbids()) is None
            assert "unknown" in guards.note


def test_a_pause_file_forbids_until_its_time(tmp_path: Path) -> None:
    wall = Wall("2026-11-30T12:00:00+00:00")
    file = pause.pause_file(tmp_path, "mesh-proxy")
    guards = Guards(pause=file, clock=wall)
    assert run(guards.forbids()) is None
    pause.pause(file, wall.now + 600, "the mesh is moved")
    assert run(guards.forbids()) == "cures are paused for another 600 s: the mesh is moved"
    wall.now += 600
    assert run(guards.forbids()) is None
    pause.pause(file, None)
    assert "until it is ended" in run(guards.forbids())
    assert pause.resume(file)
    assert not pause.resume(file)
    assert run(guards.forbids()) is None
    file.touch()
    assert run(guards.forbids()) is not None
    file.unlink()
    file.mkdir()  # somebody meant one
    assert run(guards.forbids()) is not None
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("at", "zone", "forbidden"),
    [
        ("2026-11-29T02:30:00+00:00", "UTC", True),
        ("2026-11-30T02:30:00+00:00", "UTC", False),
        ("2026-11-29T01:30:00+00:00", "Europe/Berlin", True),
        ("2026-11-29T03:30:00+00:00", "Europe/Berlin", False),
        # clocks go forward at 01:00 UTC: 02:00 to 03:00 is not there, 03:00 to 04:00 is
        ("2026-03-29T00:59:59+00:00", "Europe/Berlin", False),
        ("2026-03-29T01:00:00+00:00", "Europe/Berlin", True),
        ("2026-03-29T02:00:00+00:00", "Europe/Berlin", False),
        # clocks go back at 01:00 UTC: 02:00 to 03:00 is there twice
        ("2026-10-25T00:00:00+00:00", "Europe/Berlin", True),
        ("2026-10-25T01:30:00+00:00", "Europe/Berlin", True),
        ("2026-10-25T03:00:00+00:00", "Europe/Berlin", False),
    ],
)
def test_a_maintenance_window_is_one_of_the_clock_on_the_wall(at: str, zone: str, forbidden: bool) -> None:
    found = run(Guards(maintenance=[window(["sun"], "02:00", "04:00")], zone=zone, clock=Wall(at)).forbids())
    assert found == (f"it is a maintenance window (sun 02:00 to 04:00 {zone})" if forbidden else None)


def test_a_zone_that_is_not_known_is_said() -> None:
    assert time_zone("UTC") is UTC
    for name in ("Europe/Nowhere", "Europe", "../../etc/passwd", ""):
        with pytest.raises(UsageError, match="not known here"):
            time_zone(name)


SERVICE = """
import http.server, json
class Say(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"checks": {"management_connected": False}}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("localhost", 8080), Say)
print("up", flush=True)
server.serve_forever()
"""


@pytest.mark.root
@pytest.mark.engine
@pytest.mark.timeout(120)
def test_a_real_container_is_asked_on_its_own_loopback_and_after_its_restart_too(docker: Docker) -> None:
    name = "guarded"
    docker.run(name, SERVICE)
    which, engine = Which(name=name), Engine(docker.socket)
    guards = Guards(health=Health("http://127.0.0.1:8080/healthz", NEED, lambda: network(engine, which)))

    def said_in_time() -> str:
        deadline = time.monotonic() + 20
        while (found := run(guards.forbids())) is None and time.monotonic() < deadline:
            time.sleep(0.1)
        return str(found)

    for _ in range(2):
        assert "checks.management_connected is false" in said_in_time()
        docker("restart", "--time", "0", name)  # another process, another namespace
    docker("kill", name)
    assert run(guards.forbids()) is None
    assert "does not run (exited)" in guards.note
