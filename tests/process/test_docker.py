"""Docker's Engine API through the one HTTP client, and the cure by it: real daemons, and sockets behind which there is none."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgekeeper.errors import EdgekeeperError, MissingError
from edgekeeper.host.docker import Docker as Client
from edgekeeper.host.docker import Which, network
from edgekeeper.lab.docker import IMAGE
from edgekeeper.watch.cures.docker import DockerCure

from .dockers import Docker

pytestmark = [pytest.mark.root, pytest.mark.engine, pytest.mark.timeout(120)]

OBEYS = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit())\nprint('up', flush=True)\ntime.sleep(600)"
DEAF = "import time\nprint('up', flush=True)\ntime.sleep(600)"


def cured(docker: Docker, which: Which, stop_timeout: float | None = 1.0) -> tuple[str | None, float]:
    """What the cure says, and how long it took."""
    begun = time.monotonic()
    said = asyncio.run(DockerCure(Client(docker.socket), which, stop_timeout).apply())
    return said, time.monotonic() - begun


def state(docker: Docker, name: str) -> tuple[str, str]:
    status, started = docker("inspect", "--format", "{{.State.Status}} {{.State.StartedAt}}", name).split()
    return status, started


@pytest.fixture(params=["debian12", "testing"])
def either(request: pytest.FixtureRequest, docker: Docker, dockers: Callable[..., Docker]) -> Docker:
    """The oldest daemon and the newest."""
    return docker if request.param == "testing" else dockers(request.param)


def test_whatever_state_it_is_in_it_is_started_anew(either: Docker) -> None:
    either.run("obeys", OBEYS)
    either.run("deaf", DEAF, "--stop-timeout", "2")

    def anew(name: str, stop_timeout: float | None = 1.0) -> float:
        before = state(either, name)[1]
        said, took = cured(either, Which(name=name), stop_timeout)
        assert said is None
        status, started = state(either, name)
        assert status == "running"
        assert started > before
        return took

    assert anew("obeys") < 1.0
    assert anew("deaf", 0) < 1.5
    assert 0.9 < anew("deaf", 0.3) < 2.5, "Docker takes whole seconds: never less than what was said"
    assert 1.9 < anew("deaf", None) < 4.0, "its own stop timeout"
    either("pause", "obeys")
    assert anew("obeys") < 3.0
    os.kill(int(either("inspect", "--format", "{{.State.Pid}}", "obeys")), signal.SIGSTOP)
    assert anew("obeys") < 3.5
    either("kill", "obeys")
    assert anew("obeys") < 1.5
    either("rm", "--force", "obeys", "deaf")


def test_one_that_cannot_start_is_told_and_none_is_ever_removed(docker: Docker) -> None:
    docker("create", "--name", "empty", IMAGE, "/no/such/program")
    said = cured(docker, Which(name="empty"))[0] or "it was cured"
    assert "refuses" in said
    assert "/no/such/program" in said
    docker("rm", "--force", "empty")  # it is still there
    assert "there is no container empty" in (cured(docker, Which(name="empty"))[0] or "")


def test_only_the_one_that_is_meant_is_found(docker: Docker) -> None:
    one = docker.run("one", DEAF, "--label", "tier=edge", "--label", "app=one")
    docker.run("two", DEAF, "--label", "tier=edge")

    def found(**said: object) -> str:
        return asyncio.run(Client(docker.socket).find(Which(**said))).name  # type: ignore[arg-type]

    assert found(name="one") == found(name=one) == found(name=one[:12]) == found(label=(("app", "one"),)) == "one"
    with pytest.raises(MissingError, match="there is no container"):
        found(name=one[:5])
    with pytest.raises(MissingError, match=r"is not one but 2 .*\(one, two\)"):
        found(label=(("tier", "edge"),))
    docker("kill", "two")
    assert found(label=(("tier", "edge"),)) == "one", "of several, the one that runs"
    assert found(image=IMAGE) == "one"
    docker("tag", IMAGE, "proxy:1")
    docker("rm", "--force", "two")
    docker("create", "--name", "two", "proxy:1", "none")
    empty = docker.folder / "other.tar"
    empty.write_bytes(bytes(10240))
    docker("import", "--message", "another", str(empty), "proxy:1")
    assert found(image="proxy") == "two", "its tag is another image's by now"
    docker("rm", "--force", "one", "two")


def test_the_network_of_a_container_is_its_own(docker: Docker) -> None:
    docker.run("inside", DEAF)
    path = asyncio.run(network(Client(docker.socket), Which(name="inside")))
    assert Path(path).readlink() != Path("/proc/self/ns/net").readlink()
    docker("kill", "inside")
    with pytest.raises(MissingError, match=r"does not run \(exited\)"):
        asyncio.run(network(Client(docker.socket), Which(name="inside")))
    docker("rm", "inside")


def test_a_daemon_that_cannot_be_reached_is_told_in_a_sentence(tmp_path: Path) -> None:
    def why(path: Path) -> str:
        with pytest.raises(EdgekeeperError) as caught:
            asyncio.run(Client(str(path)).find(Which(name="x")))
        return str(caught.value)

    path = tmp_path / "docker.sock"
    assert why(path).startswith(f"there is no socket {path}; ")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert why(path) == f"nobody listens at {path}; dockerd does not run"
        server.listen(5)
        begun = time.monotonic()
        assert why(path) == f"dockerd does not answer at {path} in time; it is asked again"
        assert time.monotonic() - begun < 7


def test_what_answers_and_is_not_docker_is_told(tmp_path: Path) -> None:
    async def work(answer: bytes) -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        path = str(tmp_path / "odd.sock")
        async with await asyncio.start_unix_server(serve, path):
            with pytest.raises(EdgekeeperError) as caught:
                await Client(path).find(Which(name="x"))
            return str(caught.value)

    assert "cannot be read" in asyncio.run(work(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"))
    assert "is not Docker's Engine API" in asyncio.run(work(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"))
    assert "broke off" in asyncio.run(work(b"\x1b[31mSSH-2.0\r\n"))
