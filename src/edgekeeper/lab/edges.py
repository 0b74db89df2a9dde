"""What stands at the edge: edgekeeper by its command line, or a plain dnsdist."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgekeeper.lab.actors import Actor
from edgekeeper.lab.plain import Plain, config
from edgekeeper.lab.product import Home, Product, status_at, swap
from edgekeeper.lab.stage import MEMBER_PORT, NAMES, Stage
from edgekeeper.lab.topology import FRONT, MEMBERS

OPS_PORT = 8084


class PlainEdge:
    """dnsdist with the config of ``lab.plain``, as a unit file would start it."""

    def __init__(self, stage: Stage, members: int = 3, **changes: Any) -> None:
        self._stage = stage
        plain = Plain(listen=(f"{FRONT}:53",), members=members_of(members), policy=stage.policy)
        self.plain = replace(plain, **changes)
        self._starts = 0
        self.actor: Actor | None = None

    def write(self) -> Path:
        """Write the config that the next start reads."""
        path = self._stage.folder / "dnsdist.conf"
        path.write_text(config(self.plain), encoding="utf-8")
        return path

    async def start(self) -> Actor:
        """Start dnsdist; returns at once."""
        self._starts += 1
        argv = [self._stage.engine.binary, "-C", str(self.write()), "--supervised", "--disable-syslog"]
        self.actor = await self._stage.spawn("edge", f"dnsdist-{self._starts}", argv)
        return self.actor

    async def restart(self) -> None:
        """TERM, wait, start: what ``systemctl restart`` does."""
        if self.actor is not None:
            await self.actor.stop(10.0)
        await self.start()

    async def serve(self, members: tuple[tuple[str, str], ...]) -> None:
        """Start it with these members; wait for the first answer."""
        self.plain = replace(self.plain, members=members)
        await self.start()
        await self._stage.all_serve(1)

    def extra_listen(self, address: str) -> None:
        """Listen on one address more from the next start on."""
        self.plain = replace(self.plain, listen=(*self.plain.listen, address))

    async def up(self, members: int = 3) -> None:
        """Start it and wait until the client is answered by every member."""
        await self.start()
        await self._stage.all_serve(members)

    def engine_pid(self) -> int:
        """The process that answers."""
        return self.actor.pid if self.actor is not None else 0


class ProductEdge(Product):
    """``edgekeeper dns run`` in the edge namespace, with its members in a file unless ``dns`` says otherwise; ``root`` are other sections of its config."""

    def __init__(self, stage: Stage, members: int = 3, dns: Mapping[str, Any] | None = None, root: Mapping[str, Any] | None = None) -> None:
        self.members_file = stage.folder / "members.yaml"
        self.dns: dict[str, Any] = {
            "listen": [f"{FRONT}:53"],
            "acl": ["198.51.100.0/24", "127.0.0.0/8"],
            "members": {"file": str(self.members_file)},
            "proxy_protocol": "off",
            "health": {"name": "health.example.", "type": "TXT"},
            "policy": stage.policy,
            "debounce": "1s",
            "engine": {"binary": stage.engine.binary},
            **(dns or {}),
        }
        super().__init__(stage, "dns", self.dns, OPS_PORT, Home(root=root or {}))
        self.write_members(members_of(members))

    def write_members(self, members: tuple[tuple[str, str], ...]) -> None:
        """Replace the members file in one rename, as an editor or a deployment does."""
        swap(self.members_file, json.dumps({"members": [f"{name}={address}" for name, address in members]}, indent=1))

    async def up(self, members: int = 3) -> None:
        """Start it and wait until the client is answered by every member and the status is good."""
        await self.start()
        await self.stage.until("edgekeeper is ready", self.ready, timeout_s=20.0)
        await self.stage.all_serve(members)

    @staticmethod
    async def status_of(stage: Stage) -> dict[str, Any]:
        """``GET /status`` of whoever stands at the edge of this stage."""
        return await status_at(stage, f"127.0.0.1:{OPS_PORT}")


def members_of(count: int) -> tuple[tuple[str, str], ...]:
    """Names and addresses of the first ``count`` members."""
    return tuple((name, f"{address}:{MEMBER_PORT}") for name, address in list(zip(NAMES, MEMBERS, strict=False))[:count])
