"""The facts that edgekeeper relies on, asked over HTTP: of the fake always, and of a real NetBird by whoever has one.

``EDGEKEEPER_NETBIRD_URL=https://netbird.example EDGEKEEPER_NETBIRD_TOKEN_FILE=reader.token pytest tests/contract/test_netbird.py``

The token of a service user that may only read is enough for the first half. With ``EDGEKEEPER_NETBIRD_WRITE_TOKEN_FILE`` (an admin's) the
other half is tried too: it makes a network, its resources and one service under the first cluster's own domain, all with
``edgekeeper-contract`` in their names, and removes them.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.fakes import netbird_facts as facts

from edgekeeper.host import control
from edgekeeper.lab import netbird_schema as schema

URL = os.environ.get("EDGEKEEPER_NETBIRD_URL")
LISTS = {
    "reverse-proxies/services": "services",
    "reverse-proxies/clusters": "clusters",
    "reverse-proxies/domains": "domains",
    "groups": "groups",
    "networks": "networks",
    "networks/routers": "routers",
    "policies": "policies",
    "peers": "peers",
}
NAME = f"edgekeeper-contract-{os.getpid()}"


@dataclass
class Server:
    """One management server, over one kept connection."""

    url: str
    reader: str
    writer: str | None
    wires: list[http.client.HTTPConnection] = field(default_factory=list)

    def ask(self, method: str, path: str, body: Any = None, *, token: str | None = "") -> tuple[int, Any]:
        """One call by the writer; by the reader where there is none."""
        parts = urlsplit(self.url)
        if not self.wires:
            secure = parts.scheme == "https"
            wire = http.client.HTTPSConnection(parts.netloc, timeout=20, context=ssl.create_default_context()) if secure else None
            self.wires.append(wire or http.client.HTTPConnection(parts.netloc, timeout=20))
        shown = (self.writer or self.reader) if token == "" else token
        headers = {"Content-Type": "application/json"} | ({"Authorization": shown if " " in shown else f"Token {shown}"} if shown else {})
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        self.wires[0].request(method, f"{parts.path.rstrip('/')}/api/{path}", sent, headers)
        answer = self.wires[0].getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None


def started() -> Iterator[Server]:
    """The fake, as a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        sock = Path(folder, "netbird.sock")
        process = subprocess.Popen([sys.executable, "-m", "edgekeeper.lab.netbird", "--listen", "127.0.0.1:0", "--control", str(sock)])
        try:
            until = time.monotonic() + 20
            while not sock.is_socket():
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)
            where = order(sock, {"do": "where"})
            server = Server(where["url"], where["reader"], where["token"])
            yield server
            for wire in server.wires:
                wire.close()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0, "an answer of the fake broke the schema"


def order(sock: Path, request: dict[str, Any]) -> dict[str, Any]:
    import asyncio  # noqa: PLC0415 - for these few words only

    said = asyncio.run(control.ask(sock, request, 5))
    assert said["ok"], said
    return said


def real() -> Iterator[Server]:
    reader, writer = (os.environ.get(f"EDGEKEEPER_NETBIRD_{kind}TOKEN_FILE") for kind in ("", "WRITE_"))
    assert URL is not None
    assert reader is not None, "EDGEKEEPER_NETBIRD_TOKEN_FILE names the file of a token"
    server = Server(URL, Path(reader).read_text().strip(), Path(writer).read_text().strip() if writer else None)
    yield server
    for wire in server.wires:
        wire.close()


@pytest.fixture(scope="module", params=["fake", "real"] if URL else ["fake"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    yield from (started if request.param == "fake" else real)()


@pytest.fixture(scope="module")
def scene(server: Server) -> Iterator[facts.Scene]:
    if server.writer is None:
        pytest.skip("EDGEKEEPER_NETBIRD_WRITE_TOKEN_FILE names no token that may write")
    clusters = [cluster for cluster in facts.made(server.ask("GET", "reverse-proxies/clusters")) if cluster["online"]]
    assert clusters, "no proxy cluster is online"
    address = clusters[0]["address"]
    made = facts.prepare(server.ask, NAME, address, address)
    yield made
    assert server.ask("DELETE", f"networks/{made.network}")[0] == 200


class TestReading:
    """What the token of a service user can see."""

    @pytest.mark.parametrize("path", LISTS)
    def test_a_list_is_as_our_schema_says(self, server: Server, path: str) -> None:
        status, found = server.ask("GET", path, token=server.reader)
        assert status == 200
        assert schema.problems(schema.LISTS[LISTS[path]], found) == []

    def test_resources_and_routers_of_each_network(self, server: Server) -> None:
        for network in facts.made(server.ask("GET", "networks", token=server.reader))[:5]:
            for kind in ("resources", "routers"):
                found = facts.made(server.ask("GET", f"networks/{network['id']}/{kind}", token=server.reader))
                assert schema.problems(schema.LISTS[kind], found) == []
                assert found != [] or kind == "routers", "an empty list of resources is null"

    def test_the_version(self, server: Server) -> None:
        assert schema.problems(schema.VERSION, facts.made(server.ask("GET", "instance/version", token=server.reader))) == []

    def test_a_single_service_is_as_in_the_list(self, server: Server) -> None:
        for service in facts.made(server.ask("GET", "reverse-proxies/services", token=server.reader))[:3]:
            assert facts.made(server.ask("GET", f"reverse-proxies/services/{service['id']}", token=server.reader)).keys() == service.keys()

    def test_without_a_good_token_there_is_nothing(self, server: Server) -> None:
        for token, message in ((None, "no valid authentication provided"), ("Basic eDp5", "no valid authentication provided"), ("nbp_x", "token invalid")):
            status, said = server.ask("GET", "reverse-proxies/services", token=token)
            assert (status, said["message"]) == (401, message)

    def test_a_token_is_taken_as_bearer_too(self, server: Server) -> None:
        assert server.ask("GET", "reverse-proxies/services", token=f"Bearer {server.reader}")[0] == 200

    def test_a_group_is_found_by_its_name(self, server: Server) -> None:
        (found,) = facts.made(server.ask("GET", "groups?name=All", token=server.reader))
        assert found["name"] == "All"
        assert server.ask("GET", f"groups?name={NAME}", token=server.reader)[0] == 404

    def test_a_reader_writes_nothing(self, server: Server) -> None:
        if server.reader == server.writer:
            pytest.skip("both tokens are the same")
        status, said = server.ask("DELETE", f"reverse-proxies/services/{NAME}", token=server.reader)
        assert (status, said["message"]) == (403, "permission denied")


class TestWriting:
    """What an admin's token does, on things of its own."""

    @pytest.mark.parametrize("fact", facts.REFUSED, ids=lambda fact: fact.what)
    def test_a_service_is_refused(self, server: Server, scene: facts.Scene, fact: facts.Refused) -> None:
        facts.refused(server.ask, scene, fact)

    def test_the_life_of_a_service(self, server: Server, scene: facts.Scene) -> None:
        facts.life_of_a_service(server.ask, scene)

    def test_the_life_of_a_network(self, server: Server, scene: facts.Scene) -> None:
        del scene
        facts.life_of_a_network(server.ask, f"{NAME}-life", facts.made(server.ask("GET", "groups?name=All"))[0]["id"])

    def test_what_is_no_json_is_refused(self, server: Server, scene: facts.Scene) -> None:
        del scene
        assert server.ask("POST", "reverse-proxies/services", b"{")[0] == 400
