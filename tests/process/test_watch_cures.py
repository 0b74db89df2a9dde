"""Cures by systemd, a command and a request: done, refused, too slow, and what they leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.process.answering import Served, elsewhere, free_port, served

from edgekeeper.errors import UsageError
from edgekeeper.host.process import start_time
from edgekeeper.watch.cures.command import CommandCure
from edgekeeper.watch.cures.http import HttpCure
from edgekeeper.watch.cures.netbird import ClientsCure
from edgekeeper.watch.cures.systemd import SystemdCure
from edgekeeper.watch.seams import Cure

Stand = Callable[[str], str]


@pytest.fixture
def systemctl(tmp_path: Path) -> Stand:
    """A stand-in for systemctl with this body; ``$CALLS`` is a file that it appends its arguments to."""

    def make(body: str) -> str:
        script = tmp_path / "systemctl"
        script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nverb=$3\n{body}\n')
        script.chmod(0o755)
        return str(script)

    return make


def apply(cure: Cure, most_s: float = 10.0) -> str | None:
    return asyncio.run(asyncio.wait_for(cure.apply(), most_s))


def test_a_unit_is_restarted_and_seen_to_run(systemctl: Stand, tmp_path: Path) -> None:
    cure = SystemdCure("netbird@a.service", systemctl=systemctl("[ $verb = is-active ] && echo active; exit 0"))
    assert apply(cure) is None
    common = "--no-ask-password --no-pager"
    assert (tmp_path / "calls").read_text() == f"{common} restart -- netbird@a.service\n{common} is-active -- netbird@a.service\n"


def test_a_refused_restart_is_told_in_systemds_words(systemctl: Stand) -> None:
    said = apply(SystemdCure("x.service", systemctl=systemctl("printf 'Failed to restart x.service: Unit x.service not found.\\nmore\\n' >&2; exit 5")))
    assert said == "systemctl restart x.service failed: Failed to restart x.service: Unit x.service not found."


def test_a_unit_that_starts_slowly_is_waited_for_and_one_that_fails_is_told(systemctl: Stand, tmp_path: Path) -> None:
    slow = f"[ $verb = is-active ] || exit 0\n[ -e {tmp_path}/up ] && {{ echo active; exit 0; }}\ntouch {tmp_path}/up; echo activating; exit 3"
    assert apply(SystemdCure("x", systemctl=systemctl(slow))) is None
    assert apply(SystemdCure("x", systemctl=systemctl("[ $verb = is-active ] && echo failed; exit 0"))) == "x was restarted and is failed now"
    began = time.monotonic()
    assert (
        apply(SystemdCure("x", deadline_s=0.5, systemctl=systemctl("[ $verb = is-active ] && echo activating; exit 0")))
        == "x was restarted and is activating now"
    )
    assert time.monotonic() - began < 3


def test_a_restart_that_hangs_ends_with_its_deadline(systemctl: Stand) -> None:
    began = time.monotonic()
    said = apply(SystemdCure("x", deadline_s=0.3, systemctl=systemctl("sleep 60")))
    assert time.monotonic() - began < 3
    assert said is not None
    assert "systemd may go on with the restart" in said


@pytest.mark.parametrize(
    ("state", "ours", "left_alone"), [("inactive", False, True), ("inactive", True, False), ("failed", False, False), ("active", False, False)]
)
def test_a_unit_that_somebody_stopped_is_left_alone(systemctl: Stand, state: str, ours: bool, left_alone: bool) -> None:
    said = asyncio.run(SystemdCure("x.service", systemctl=systemctl(f"echo {state}; exit 3")).ready(ours=ours, since=0.0))
    assert said == ("x.service is inactive: somebody stopped it; that is no wedge, so start it yourself" if left_alone else None)


def test_where_systemd_is_not_that_is_said() -> None:
    said = apply(SystemdCure("x", systemctl="/nonexistent/systemctl"))
    assert said is not None
    assert "cannot be run" in said


@pytest.mark.parametrize("unit", ["", "-H", "--root=/x", "a b", "a;b", "*.service", "a/b", "a\n", "netbird@.service", "x" * 300])
def test_what_is_no_unit_never_reaches_a_command_line(unit: str) -> None:
    with pytest.raises(UsageError, match="unit"):
        SystemdCure(unit)


def test_a_command_that_works_and_one_that_fails() -> None:
    assert apply(CommandCure(["true"])) is None
    said = apply(CommandCure(["sh", "-c", "echo first; printf 'last\\033[2J\\n\\n'; exit 4"]))
    assert said == "sh exited with 4: last\\x1b[2J"
    assert apply(CommandCure(["sh", "-c", "kill -TERM $$"])) == "sh was ended by signal 15"
    assert "cannot be run" in str(apply(CommandCure(["/nonexistent/cure"])))


def test_no_shell_reads_a_command(tmp_path: Path) -> None:
    said = apply(CommandCure([sys.executable, "-c", "import sys; sys.exit(sys.argv[1])", f"$(touch {tmp_path}/made); `touch {tmp_path}/made`"]))
    assert said is not None
    assert not (tmp_path / "made").exists()


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    said = apply(CommandCure(["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/child; wait"], deadline_s=0.5))
    assert time.monotonic() - began < 3
    assert said == "sh did not end within 0.5 s; it was killed"
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 5
    while start_time(child) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert start_time(child) is None


def test_a_command_has_no_terminal_and_no_input_of_ours() -> None:
    check = "import os, sys; sys.exit(os.getsid(0) != os.getpid() or sys.stdin.read() != '')"
    assert apply(CommandCure([sys.executable, "-c", check])) is None


def test_a_request_that_is_answered_with_2xx_is_done(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("made-up-secret\n")
    token.chmod(0o600)

    async def work() -> None:
        async with served() as web:
            url = f"http://127.0.0.1:{web.port}/debug/clients/a/stop?x=1"
            assert await HttpCure(url, token_file=str(token)).apply() is None
            assert await HttpCure(url, method="PUT").apply() is None
            first, second = (head.split("\r\n") for head in web.heads)
            assert first[0] == "POST /debug/clients/a/stop?x=1 HTTP/1.1"
            assert {"Authorization: Bearer made-up-secret", "Content-Length: 0"} <= set(first)
            assert second[0].startswith("PUT ")
            assert not any("Authorization" in line for line in second)
            for web.status in (302, 401, 500):
                web.body = "made-up-secret is wrong"
                said = await HttpCure(url, token_file=str(token)).apply()
                assert said == f"POST {url.partition('?')[0]} was answered with HTTP {web.status}"

    asyncio.run(asyncio.wait_for(work(), 10))


def test_a_request_that_is_not_answered_ends_with_its_deadline(tmp_path: Path) -> None:
    async def work() -> None:
        async with served(hangs=True) as wedged:
            began = time.monotonic()
            said = await HttpCure(f"http://127.0.0.1:{wedged.port}/", deadline_s=0.3).apply()
            assert time.monotonic() - began < 1
            assert "0.3 s" in str(said)
        assert "did not answer" in str(await HttpCure(f"http://127.0.0.1:{free_port()}/").apply())
        assert "cannot be read" in str(await HttpCure("http://127.0.0.1:1/", token_file=str(tmp_path / "none")).apply())

    asyncio.run(asyncio.wait_for(work(), 10))


@pytest.mark.root
def test_a_request_from_inside_a_namespace() -> None:
    with elsewhere() as (path, told):

        async def inside() -> str:
            return path

        url = f"http://127.0.0.1:{told.port}/restart"
        assert apply(HttpCure(url, inside=inside)) is None
        assert told.heads[0].startswith("POST /restart ")
        assert apply(HttpCure(url)) is not None
        assert len(told.heads) == 1


@pytest.mark.root
def test_without_the_right_to_enter_a_namespace_that_is_said() -> None:
    code = "import os, sys; from edgekeeper.host import netns; os.setgid(65534); os.setuid(65534); netns.open_socket(sys.argv[1])"
    path = f"/proc/{os.getpid()}/ns/net"
    child = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=20, check=False)
    assert child.stderr.strip().endswith(f"the network namespace {path} cannot be entered: the right to is missing (CAP_SYS_ADMIN)")


class Debug:
    """The debug endpoint of NetBird's proxy, as far as it is used: every answer is 200, a failure too."""

    def __init__(self, web: Served, *, cannot: tuple[str, ...] = ()) -> None:
        self.calls: list[str] = []
        self._cannot = cannot
        web.say = self._say

    def _say(self, head: str) -> str:
        path = head.split(" ")[1].removeprefix("/debug/clients").partition("?")[0]
        if not path:
            rows = [{"account_id": name, "has_client": name != "c"} for name in ("a/1", "b", "c")]
            return json.dumps({"client_count": 3, "clients": rows})
        self.calls.append(path)
        return json.dumps({"success": False, "error": "context deadline\x1b[2J"} if path in self._cannot else {"success": True})


def test_the_clients_of_a_mesh_proxy_are_stopped_and_started_one_after_the_other() -> None:
    async def work() -> None:
        async with served() as web:
            debug = Debug(web)
            cure = ClientsCure(f"http://127.0.0.1:{web.port}/")
            assert await cure.apply() is None
            assert debug.calls == ["/a%2F1/stop", "/a%2F1/start", "/b/stop", "/b/start"]

    asyncio.run(asyncio.wait_for(work(), 10))


def test_a_client_that_could_not_be_stopped_is_started_all_the_same_and_told() -> None:
    async def work() -> None:
        async with served() as web:
            debug = Debug(web, cannot=("/a%2F1/stop",))
            assert await ClientsCure(f"http://127.0.0.1:{web.port}").apply() == "client a/1 could not be told to stop: context deadline\\x1b[2J"
            assert debug.calls[1:] == ["/a%2F1/start", "/b/stop", "/b/start"]

    asyncio.run(asyncio.wait_for(work(), 10))


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (404, "no", "is the debug endpoint on?"),
        (200, "no", "is the debug endpoint on?"),
        (200, '{"clients": []}', "names no client"),
        (200, "[1]", "names no client"),
    ],
)
def test_another_server_is_not_taken_for_it(status: int, body: str, says: str) -> None:
    async def work() -> None:
        async with served() as web:
            web.status, web.body = status, body
            assert says in str(await ClientsCure(f"http://127.0.0.1:{web.port}").apply())
            assert len(web.heads) == 1

    asyncio.run(asyncio.wait_for(work(), 10))
