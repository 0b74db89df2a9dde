"""A mesh on the stage of a drill: the fake of its management server, its proxy, what stands behind the proxy, and who is routed at each moment.

The management server and the proxy live at the edge, the cluster and its ingress controller in the namespace of the members. The
addresses of Services are real there: who asks one that no Service has gets no answer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Self

from edgekeeper.errors import StepFailedError
from edgekeeper.host import control
from edgekeeper.lab import visits
from edgekeeper.lab.outcome import Measured
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import BACK, FRONT, MEMBERS
from edgekeeper.measure.outages import longest

URL = f"http://{BACK}:8080"
SERVICE_CIDR = "198.51.100.0/24"
"""Where the lab's Kubernetes takes the addresses of Services from."""
TARGETS = ("198.51.100.80", "198.51.100.81", "198.51.100.82")
"""Addresses that an ingress controller's Service has, or will have."""
_LOOK_S = 0.02


def hosts(count: int, letter: str = "h") -> tuple[str, ...]:
    """Names under the mesh's domain."""
    return tuple(f"{letter}{number:02}.home.example" for number in range(count))


def url(host: str) -> str:
    """What a client asks for a host."""
    return f"https://{FRONT}/#sni={host}&verify=no"


class Mesh:
    """``seen`` has when each host was routed first (monotonic clock); ``gone`` those that were once not, while they were kept an eye on."""

    def __init__(self, stage: Stage) -> None:
        self.seen: dict[str, float] = {}
        self.gone: dict[str, float] = {}
        self._stage = stage
        self._socket = stage.folder / "mesh.sock"
        self._kept: set[str] = set()
        self._routed: set[str] = set()
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start it, and make the ways to and from it."""
        argv = [sys.executable, "-m", "edgekeeper.lab.netbird", "--listen", f"{BACK}:8080", "--control", str(self._socket), "--proxy", f"{FRONT}:443"]
        await self._stage.spawn("edge", "mesh", argv)
        await self._stage.spawn("members", "ingress", [sys.executable, "-m", "edgekeeper.lab.tlsbackend", "--listen", "0.0.0.0:443"])
        await self._stage.net.ip("members", "route", "add", FRONT, "via", BACK)
        for target in TARGETS:
            await self._stage.net.ip("edge", "route", "add", target, "via", MEMBERS[0])
        await self._stage.until("the mesh answers", self._answers, every=0.02)
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def tell(self, do: str, **given: Any) -> dict[str, Any]:
        """A command of its control socket; StepFailedError when it does not take it."""
        found = await control.ask(self._socket, {"do": do, **given}, 5.0)
        if not found.get("ok"):
            msg = f"the mesh did not take {do!r}: {found.get('why')}; the drill stops"
            raise StepFailedError(msg)
        return found

    async def token(self, name: str = "") -> Path:
        """A file with a token: the administrator's, or one of its own for a name, by which its writes can be told apart."""
        found = (await self.tell("where"))["token"]
        if name:
            found = f"nbp_{name}"
            await self.tell("user", token=found)
        file = self._stage.folder / f"{name or 'mesh'}.token"
        file.touch(mode=0o600)
        file.write_text(found + "\n", encoding="ascii")
        return file

    async def writes(self, since: float = 0.0, *, name: str = "", method: str = "") -> list[float]:
        """When services were written since a moment: by whom (``token``) and how, where that is said."""
        rows = (await self.tell("log"))["log"]
        return [at for at, who, how, kind in rows if at >= since and kind == "services" and name in {"", who.removeprefix("nbp_")} and method in {"", how}]

    async def cut(self) -> int:
        """How many connections of clients its proxy has cut so far."""
        return int((await self.tell("proxy"))["count"].get("cut", 0))

    # --- who is routed

    async def routes(self, wanted: Iterable[str], *, timeout_s: float = 30.0) -> float:
        """Wait until all of these are routed; how long that took."""
        missing = set(wanted)

        async def check() -> bool:
            return missing <= self._now()

        return await self._stage.until(f"{len(missing)} hosts are published", check, timeout_s=timeout_s, every=_LOOK_S)

    def keep_an_eye_on(self, wanted: Collection[str]) -> None:
        """From now on it counts when one of these is not routed."""
        self._kept |= set(wanted)

    def _now(self) -> set[str]:
        if self._looking is not None and self._looking.done():
            self._looking.result()
        return self._routed

    async def _look(self) -> None:
        while True:
            found = set((await self.tell("routed"))["hosts"])
            now = time.monotonic()
            self._routed = found
            for host in found - self.seen.keys():
                self.seen[host] = now
            if gone := self._kept - found - self.gone.keys():
                self.gone |= dict.fromkeys(gone, now)
                self._stage.place(now, f"not published any more: {', '.join(sorted(gone)[:3])}{f' and {len(gone) - 3} more' if len(gone) > 3 else ''}")
            await asyncio.sleep(_LOOK_S)

    async def _answers(self) -> bool:
        return self._socket.is_socket() and bool(await self.tell("where"))

    # --- what was measured

    async def measured(self, seen: visits.Visits, since: float, **more: float) -> Measured:
        """What clients saw, with what was deleted and gone since a moment."""
        self._now()
        samples = [one for some in seen.values() for one in some]
        lost = visits.lost(samples)
        outage = longest(found for some in seen.values() if (found := visits.worst([s for s in some if s.conn == "fresh"])) is not None)
        deletes = len(await self.writes(since, method="DELETE"))
        self._stage.note(f"{lost} of {len(samples)} questions unanswered, {deletes} services deleted, {len(self.gone)} hosts were gone at some time")
        figures = {"asked": len(samples), "unanswered": lost, "deletes": deletes, "gone": len(self.gone), **more}
        return Measured(figures, outage)
