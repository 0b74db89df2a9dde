"""The canary: whether this HAProxy really ends the sessions of a server that goes DOWN. Asked, not believed.

Releases have shipped in which ``on-marked-down shutdown-sessions`` did nothing. So a throwaway HAProxy of the same binary is started
with a private listener and a private server (unix sockets in a folder of its own); a session is opened, the server becomes a black
hole to the check, and the session must end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.haproxy.stats import parse_info, parse_stat
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import process
from edgekeeper.host.files import make_folder, read_text, write_text
from edgekeeper.host.watch import fingerprint
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ports import Clock

NAME = "canary.json"
SCHEMA = 1
START_S = 1.0
"""From the start of the process to the first answer through it."""
DOWN_S = 1.2
"""From the black hole to DOWN: with ``inter 100ms fall 1`` and ``timeout check 200ms`` it takes 0.2 to 0.3 s."""
CUT_S = 0.5
"""From DOWN to the end of the session (measured on 2.6.12, 3.0.11 and 3.2.26: within 10 ms)."""
STOP_S = 0.3

_MARK = "EDGEKEEPER_CANARY"
_FOLDER = "edgekeeper-canary-"
_LEFTOVER_S = 30.0
_WORD = b"canary\n"


def render(folder: str, *, cut: bool = True) -> str:
    """The throwaway configuration; without ``cut`` it lacks the directive, for showing that the test can fail."""
    directive = " on-marked-down shutdown-sessions" if cut else ""
    return f"""\
global
    stats socket {folder}/admin.sock mode 600 level admin
    nbthread 1
    maxconn 20
defaults
    mode tcp
    timeout connect 1s
    timeout client 30s
    timeout server 30s
    timeout check 200ms
frontend canary
    bind unix@{folder}/front.sock
    default_backend canary
backend canary
    option httpchk GET /readyz
    http-check expect status 200
    server canary unix@{folder}/back.sock check inter 100ms fall 1 rise 1{directive}
"""


async def self_test(binary: str, *, cut: bool = True) -> Verdict:
    """Whether the HAProxy ``binary`` ends sessions of a DOWN server: ok, bad, or unknown when the test itself did not come off.

    Takes under 3 s and leaves nothing behind, whatever happens. ``cut=False`` renders the configuration without the directive.
    """
    await _end_leftovers()
    with tempfile.TemporaryDirectory(prefix=_FOLDER, ignore_cleanup_errors=True) as folder:
        try:
            return await _test(binary, Path(folder), cut=cut)
        except (EdgekeeperError, OSError) as err:
            return Verdict(Health.UNKNOWN, f"the self-test of {binary} did not come off: {err}")


async def once(binary: str, folder: str | Path, clock: Clock) -> Verdict:
    """The verdict about this binary, remembered in ``folder`` until the file is another than it was; unknown ones are not remembered."""
    path = make_folder(folder) / NAME
    program = list(fingerprint(binary) or ())
    with contextlib.suppress(EdgekeeperError, ValueError, KeyError, TypeError, AttributeError):
        kept = json.loads(read_text(path))
        if kept["schema"] == SCHEMA and kept["binary"] == binary and program and kept["fingerprint"] == program:
            return Verdict(Health(kept["health"]), str(kept["why"]), dict(kept["evidence"]))
    verdict = await self_test(binary)
    if verdict.health is not Health.UNKNOWN and program:
        text = {"schema": SCHEMA, "binary": binary, "fingerprint": program, "at": clock.wall(), "health": verdict.health, "why": verdict.why}
        with contextlib.suppress(EdgekeeperError):  # then it is asked again at the next start
            write_text(path, json.dumps({**text, "evidence": verdict.evidence}, indent=1) + "\n")
    return verdict


@dataclass(slots=True)
class _Origin:
    """The private server: answers checks while it is well, and says back what the canary says."""

    well: bool = True
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(OSError):
            while data := await reader.read(4096):
                if data.startswith(_WORD):
                    writer.write(data)
                elif self.well:
                    writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
                    break
            writer.close()


@contextlib.asynccontextmanager
async def _origin(path: Path) -> AsyncIterator[_Origin]:
    origin = _Origin()
    server = await asyncio.start_unix_server(origin.serve, str(path))
    try:
        yield origin
    finally:
        server.close()
        for writer in origin.writers:
            writer.transport.abort()


async def _test(binary: str, folder: Path, *, cut: bool) -> Verdict:
    write_text(folder / "haproxy.cfg", render(str(folder), cut=cut), sync=False)
    async with _origin(folder / "back.sock") as origin:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("EDGEKEEPER_")}
        haproxy = process.spawn([binary, "-db", "-f", str(folder / "haproxy.cfg")], folder / "log", {**environment, _MARK: "1"})
        try:
            return await _fly(binary, folder, origin, haproxy)
        finally:
            with contextlib.suppress(EdgekeeperError):
                await haproxy.stop(STOP_S)


async def _fly(binary: str, folder: Path, origin: _Origin, haproxy: process.Process) -> Verdict:
    opened = await _open(folder, haproxy)
    if opened is None:
        said = read_text(folder / "log")[-300:].strip()
        return Verdict(Health.UNKNOWN, f"{binary} did not pass the canary's session on within {START_S:g} s; it said: {said or 'nothing'}")
    reader, writer = opened
    try:
        admin = Admin(str(folder / "admin.sock"), deadline_s=DOWN_S)
        version = parse_info(await admin.ask("show info")).version
        began = time.monotonic()
        origin.well = False
        ended = asyncio.create_task(_ended(reader, began))
        down_ms = await _down(admin, began, ended)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(ended), CUT_S)
        cut_ms = ended.result() if ended.done() else None
        ended.cancel()
        return _judge(version, down_ms, cut_ms, alive=haproxy.alive())
    finally:
        writer.transport.abort()


def _judge(version: str, down_ms: int | None, cut_ms: int | None, *, alive: bool) -> Verdict:
    evidence = {"version": version, "down_ms": down_ms, "cut_ms": cut_ms}
    if not alive:
        return Verdict(Health.UNKNOWN, f"HAProxy {version} ended in the middle of the self-test", evidence)
    if down_ms is None:
        return Verdict(Health.UNKNOWN, f"HAProxy {version} did not call a black hole DOWN within {DOWN_S:g} s; whether it cuts is not known", evidence)
    if cut_ms is None:
        why = f"HAProxy {version} does not end the sessions of a server that is DOWN: the canary's was still there {CUT_S:g} s later"
        return Verdict(Health.BAD, why, evidence)
    return Verdict(Health.OK, f"HAProxy {version} ends the sessions of a server that is DOWN: the canary's ended {cut_ms} ms after the black hole", evidence)


async def _open(folder: Path, haproxy: process.Process) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    """A session through HAProxy to the private server, shown to stand by an answer."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and haproxy.alive():
        try:
            reader, writer = await asyncio.open_unix_connection(str(folder / "front.sock"))
        except OSError:
            await asyncio.sleep(0.02)
            continue
        with contextlib.suppress(OSError, TimeoutError):
            writer.write(_WORD)
            if await asyncio.wait_for(reader.read(len(_WORD)), max(0.05, deadline - time.monotonic())) == _WORD:
                return reader, writer
        writer.transport.abort()
        await asyncio.sleep(0.02)
    return None


async def _ended(reader: asyncio.StreamReader, began: float) -> int:
    with contextlib.suppress(OSError):
        await reader.read(1)
    return round((time.monotonic() - began) * 1000)


async def _down(admin: Admin, began: float, ended: asyncio.Task[int]) -> int | None:
    """Milliseconds until HAProxy shows the server DOWN; asked at once when the session ended."""
    while time.monotonic() - began < DOWN_S:
        server = parse_stat(await admin.ask("show stat")).server("canary", "canary")
        if server is not None and server.down:
            return round((time.monotonic() - began) * 1000)
        await asyncio.wait([ended], timeout=0.03)
        if ended.done():
            await asyncio.sleep(0.01)
    return None


async def _end_leftovers() -> None:
    """End canaries whose tester was killed in the middle: whatever is older than a test can last."""
    now_ticks = time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")
    for pid, started in process.marked(_MARK, "1"):
        if now_ticks - started > _LEFTOVER_S * os.sysconf("SC_CLK_TCK") and (left := process.Process.find(pid, started)) is not None:
            with contextlib.suppress(EdgekeeperError):
                await left.stop(STOP_S)
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and time.time() - found.st_mtime > _LEFTOVER_S:
                shutil.rmtree(folder, ignore_errors=True)
