"""``ports.Engine`` and ``ports.Hands`` of the engine in ``engine.py``: all that supervision asks of one, in a page."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from edgekeeper.errors import MissingError
from edgekeeper.ports import Change, Cost
from edgekeeper.probe.packet import parse, question

PROGRAM = str(Path(__file__).with_name("engine.py"))


@dataclass(frozen=True, slots=True)
class Intent:
    """What the fake engine shall be; ``script`` is pairs of what goes wrong."""

    listen: tuple[str, ...]
    members: tuple[str, ...]
    script: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Seat:
    """What one process of it is given."""

    control: int
    private: int
    token: str = field(repr=False)


class FakeEngine:
    """``ports.Engine``."""

    name = "fake"
    uncertain = Cost.RESTART

    def files(self, intent: Any, seat: Any) -> Mapping[str, str]:
        whole = {"listen": intent.listen, "members": intent.members, "script": dict(intent.script), **asdict(seat)}
        return {"engine.json": json.dumps(whole, indent=1)}

    def change(self, old: Any, new: Any) -> Change:
        if (old.listen, old.script) != (new.listen, new.script):
            return Change(Cost.RESTART, "listeners", "other listeners")
        if old.members != new.members:
            return Change(Cost.LIVE, "membership", "other members")
        return Change(Cost.NOTHING, "other", "nothing changed")

    def check_argv(self, folder: str) -> Sequence[str]:
        return (sys.executable, "-I", "-S", PROGRAM, "check", folder)

    def judge(self, code: int, output: str) -> str | None:
        if code < 0:
            return f"the check died by signal {-code}"
        if "error" in output or code:
            return f"the check refused: {output.strip()}"
        return None if "Configuration OK" in output else "the check said nothing"

    def run_argv(self, folder: str, seat: Any) -> Sequence[str]:
        return (sys.executable, "-I", "-S", PROGRAM, "run", folder)

    def dump(self, intent: Any, seat: Any) -> str:
        return json.dumps({"intent": asdict(intent), "seat": asdict(seat) if seat is not None else None})

    def load(self, text: str) -> tuple[Intent, Seat | None]:
        try:
            kept = json.loads(text)
            intent, seat = kept["intent"], kept["seat"]
            script = tuple((str(key), str(value)) for key, value in intent["script"])
            return Intent(tuple(intent["listen"]), tuple(intent["members"]), script), Seat(**seat) if seat is not None else None
        except (KeyError, TypeError) as err:
            raise ValueError(text) from err

    def steerable(self, intent: Any) -> Sequence[str]:
        return tuple(intent.listen)


class FakeHands:
    """``ports.Hands``."""

    prove_s = 2.0

    def new_seat(self, intent: Any) -> Seat:
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
            return Seat(one.getsockname()[1], two.getsockname()[1], secrets.token_hex(8))

    async def preflight(self, intent: Any, seat: Any, beside: Any | None, serving: int | None = None) -> str | None:
        for listen in intent.listen:
            host, _, port = listen.rpartition(":")
            with socket.socket(type=socket.SOCK_DGRAM) as probe:
                if beside is not None:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                try:
                    probe.bind((host, int(port)))
                except OSError as err:
                    return f"{listen} cannot be listened on: {err.strerror}"
        return None

    async def prove(self, intent: Any, seat: Any, pid: int) -> str | None:
        why = "nothing was asked yet"
        try:
            async with asyncio.timeout(self.prove_s):
                while True:
                    try:
                        held = await self.ask(seat)
                        why = "" if (held["pid"], tuple(held["members"])) == (pid, intent.members) else f"it holds {held}"
                        if not why and await asyncio.to_thread(answers, f"127.0.0.1:{seat.private}"):
                            return None
                    except (OSError, ValueError) as err:
                        why = str(err)
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return f"the fake engine did not prove itself within {self.prove_s:g} s: {why or 'it does not answer'}"

    async def reload(self, new: Any, seat: Any, pid: int) -> str | None:
        return "the fake engine cannot reload"

    async def live(self, old: Any, new: Any, seat: Any) -> str | None:
        try:
            async with asyncio.timeout(2):
                held = await self.ask(seat, set=list(new.members))
        except (OSError, ValueError) as err:
            return f"the live change failed: {err}"
        return None if tuple(held["members"]) == new.members else f"it holds {held['members']}"

    async def ask(self, seat: Any, **more: Any) -> dict[str, Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", seat.control)
        try:
            writer.write(json.dumps({"token": seat.token, **more}).encode() + b"\n")
            found: dict[str, Any] = json.loads(await reader.readline())
            return found
        finally:
            writer.close()


def answers(listen: str, timeout_s: float = 0.3) -> bool:
    """Whether one question is answered."""
    host, _, port = listen.rpartition(":")
    with socket.socket(type=socket.SOCK_DGRAM) as asker:
        asker.settimeout(timeout_s)
        try:
            asker.sendto(question(7, "www.example."), (host, int(port)))
            return parse(asker.recv(4096)).rcode == 0
        except (OSError, ValueError):
            return False


class MemoryProcess:
    """``host.process.Process`` that is none: for tests without processes."""

    made = 0

    def __init__(self) -> None:
        MemoryProcess.made += 1
        self.pid = 1000 + MemoryProcess.made
        self.started = MemoryProcess.made
        self.code: int | None = None
        self.ended = asyncio.Event()

    def alive(self) -> bool:
        return not self.ended.is_set()

    def end(self, code: int) -> None:
        self.code = code
        self.ended.set()

    def signal(self, number: int) -> None:
        if number in (9, 15):
            self.end(-number)

    async def wait(self) -> int | None:
        await self.ended.wait()
        return self.code

    async def stop(self, deadline_s: float) -> str:
        self.end(0)
        await asyncio.sleep(0)
        return "ended on TERM"


class MemoryHands:
    """``ports.Hands`` that says yes, or what it was told to say next."""

    def __init__(self) -> None:
        self.preflights: list[str | None] = []
        self.proofs: list[str | None] = []
        self.lives: list[str | None] = []
        self.reloads: list[str | None] = []
        self.during_live: Any = None
        self.seats = 0

    def new_seat(self, intent: Any) -> Seat:
        self.seats += 1
        return Seat(self.seats, self.seats, "x")

    async def preflight(self, intent: Any, seat: Any, beside: Any | None, serving: int | None = None) -> str | None:
        return self.preflights.pop(0) if self.preflights else None

    async def prove(self, intent: Any, seat: Any, pid: int) -> str | None:
        return self.proofs.pop(0) if self.proofs else None

    async def reload(self, new: Any, seat: Any, pid: int) -> str | None:
        return self.reloads.pop(0) if self.reloads else None

    async def live(self, old: Any, new: Any, seat: Any) -> str | None:
        if self.during_live is not None:
            self.during_live()
            await asyncio.sleep(0)
        return self.lives.pop(0) if self.lives else None


def missing(*_: object) -> Any:
    """A program that is not there."""
    raise MissingError("the engine is not installed")
