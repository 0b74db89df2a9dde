"""The mesh's server in memory, behind the real client: no socket, a clock that sleeping moves on."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.fakes.turned import WALL_S, Still

from edgekeeper.config.expose import NetBird as Wanted
from edgekeeper.expose.infrastructure import Infrastructure
from edgekeeper.expose.netbird import NetBird
from edgekeeper.host.poll import Response
from edgekeeper.lab.netbird_state import State
from edgekeeper.lab.netbird_world import World


class Mesh:
    """A server, and a client of it. ``break_`` is raised in place of the next answers."""

    def __init__(self) -> None:
        self.clock = Still(0.0, wall_ahead=WALL_S)
        self.state = State(World(now=self.clock.wall()))
        self.token = "nbp_main_admin"
        self.broken: Exception | None = None
        self.client = NetBird("http://mesh.example", self._read, timeout_s=5, clock=self.clock, sleep=self.clock.sleep)
        self.client._client = self  # type: ignore[assignment]

    async def _read(self) -> str:
        return self.token

    async def request(self, method: str, url: str, *, deadline_s: float, headers: dict[str, str], body: bytes | None = None) -> Response:
        await asyncio.sleep(0)
        if self.broken is not None:
            raise self.broken
        answer = self.state.handle(method, url.removeprefix("http://mesh.example"), headers["Authorization"], body or b"", self.clock.wall())
        return Response(answer.status, answer.body.decode())

    @property
    def calls(self) -> int:
        return sum(self.state.counters.calls.values())

    def under(self, *, owner: str = "home", cluster: str = "default", state_dir: str | None = None, **more: Any) -> Infrastructure:
        """The infrastructure of an edgekeeper with this config."""
        wanted = Wanted.model_validate({"url": "http://mesh.example", "token_env": "T", **more})
        return Infrastructure(self.client, wanted, owner=owner, cluster=cluster, clock=self.clock, state_dir=state_dir)

    def hand(self, method: str, path: str, body: Any = None) -> Any:
        return self.state.hand(method, path, body)

    def network(self, name: str = "edgekeeper") -> dict[str, Any]:
        return next(one for one in self.hand("GET", "networks") if one["name"] == name)

    def resources(self, name: str = "edgekeeper") -> list[dict[str, Any]]:
        return self.hand("GET", f"networks/{self.network(name)['id']}/resources") or []

    def routers(self, name: str = "edgekeeper") -> list[dict[str, Any]]:
        return self.hand("GET", f"networks/{self.network(name)['id']}/routers") or []
