"""A clock, a source of wishes, a mesh and what is below it: everything around a ``Sync``, for passes one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgekeeper.config.expose import Expose
from edgekeeper.expose.kinds import Anchor, Claim, Footing, Origin, Place, Service, Snapshot
from edgekeeper.expose.netbird_say import ApiError
from edgekeeper.expose.outcome import Outcome
from edgekeeper.expose.sync import Pass, Sync, setting_of
from edgekeeper.model.entry import Entry
from edgekeeper.model.moment import Moment

PLACE = Place("10.96.0.10", 443)


def config(**more: Any) -> Expose:
    said = {
        "owner": "home",
        "cluster": "a",
        "netbird": {"url": "https://netbird.example", "token_env": "T"},
        "targets": {"default": "10.96.0.10"},
        "lease": None,
    }
    return Expose.model_validate({**said, **more})


class World:
    """A clock, a source of wishes, a mesh and what is below it, and the journal: everything around a ``Sync``."""

    def __init__(self, file: Path, **more: Any) -> None:
        self.now = 1000.0
        self.seen = Snapshot((), {"default": PLACE}, 1, whole=True)
        self.relists = 0
        self.services_there: dict[str, Service] = {}
        self.refuses: dict[str, ApiError] = {}
        self.broken: Exception | None = None
        self.slow_s = 0.0
        self.calls: list[str] = []
        self.asked: list[tuple[Sequence[str], str | None, Sequence[int]]] = []
        self.alive = frozenset({"res-1"})
        self.doubts: list[str] = []
        self.remarks: tuple[str, ...] = ()
        self.acts: tuple[str, ...] = ()
        self.steps: tuple[str, ...] = ()
        self.entries: list[Entry] = []
        self.told: list[Outcome] = []
        self.file = file
        self.more = more
        self.sync = self.again()

    def again(self) -> Sync:
        """Another process over the same file."""
        self.sync = Sync(config(**self.more), self, self, self, self, self, self.file, self.told.append)  # type: ignore[arg-type]
        return self.sync

    # a clock and a journal

    def monotonic(self) -> float:
        return self.now

    def moment(self) -> Moment:
        return Moment(self.now, self.now, "boot", self.now)

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)

    # a source

    def wants(self, *hosts: str, klass: str = "", **annotations: str) -> None:
        noted = {f"edgekeeper.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        claims = tuple(Claim(Origin("Ingress", "shop", host, "u", 5.0), (host,), klass, noted) for host in hosts)
        self.seen = replace(self.seen, claims=claims, lists=self.seen.lists + 1)

    def snapshot(self) -> Snapshot:
        return self.seen

    async def relist(self) -> bool:
        self.relists += 1
        self.calls.append("relist")
        self.seen = replace(self.seen, lists=self.seen.lists + 1)
        return True

    # the mesh

    async def services(self) -> list[Service]:
        self.calls.append("services")
        if self.broken is not None:
            raise self.broken
        return list(self.services_there.values())

    async def service(self, service_id: str, /) -> Service | None:
        return self.services_there.get(service_id)

    async def create(self, body: Any, /) -> Service:
        return self._put(f"id-{body['domain']}", body)

    async def make_good(self, body: Any, /) -> Service:
        return await self.create(body)

    async def replace(self, service_id: str, body: Any, /) -> Service:
        return self._put(service_id, body)

    async def remove(self, service_id: str, /) -> bool:
        self.calls.append(f"DELETE {service_id.removeprefix('id-')}")
        return self.services_there.pop(service_id, None) is not None

    def _put(self, identity: str, body: Any) -> Service:
        host = body["domain"]
        self.now += self.slow_s
        self.calls.append(f"WRITE {host}")
        if host in self.refuses:
            raise self.refuses[host]
        self.services_there[identity] = Service(identity, host, body["name"], {**body, "id": identity})
        return self.services_there[identity]

    def hosts(self) -> dict[str, Service]:
        return {service.host: service for service in self.services_there.values()}

    # what is below the services

    async def ensure(self, addresses: Iterable[str], service_cidr: str | None, *, ports: Iterable[int] = ()) -> Footing:
        self.calls.append("ensure")
        self.asked.append((list(addresses), service_cidr, list(ports)))
        return await self._footing()

    async def look(self, addresses: Iterable[str], service_cidr: str | None, *, ports: Iterable[int] = ()) -> tuple[Footing, tuple[str, ...]]:
        self.calls.append("look")
        footing = await self._footing()
        return (replace(footing, by_address={}) if self.steps else footing), self.steps

    async def _footing(self) -> Footing:
        return Footing({address: Anchor(min(self.alive), "subnet") for address in ("10.96.0.10", "10.96.0.11")}, self.alive)

    def doubt(self, why: str) -> None:
        self.doubts.append(why)

    # passes

    def once(self, *, later: float = 60.0, first: bool = False, may: Callable[[], None] = lambda: None, **more: Any) -> Pass:
        self.now += later
        self.calls.clear()
        setting = setting_of(self.sync.expose, adopt=more.pop("adopt", ()))
        return asyncio.run(self.sync.once(setting, first=first, may=may, **more))

    def wrote(self) -> list[str]:
        return [call.partition(" ")[2] for call in self.calls if call.startswith(("WRITE", "DELETE"))]


def refusal(kind: Any, status: int = 412, **more: Any) -> ApiError:
    return ApiError(kind, "it cannot be published", status, "no", **more)
