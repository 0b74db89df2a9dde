"""A mesh in memory on which plans are carried out, and actions as a plan asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tests.fakes.journal import Journal

from edgekeeper.expose import body
from edgekeeper.expose.apply import Outcome, apply
from edgekeeper.expose.kinds import Anchor, Options, Origin, Place, Service
from edgekeeper.expose.mark import Mark
from edgekeeper.expose.netbird_say import ApiError
from edgekeeper.expose.plan import Action, Kind

PLACE, ANCHOR = Place("10.96.0.10", 443), Anchor("res-1", "subnet")


def mark(host: str) -> Mark:
    return Mark.of("home", "a", Origin("Ingress", "shop", host))


def made(host: str, name: str = "", **more: Any) -> Service:
    raw = body.fresh(host, name or mark(host).text, Options(), PLACE, ANCHOR, listen_port=443, proxy_protocol=True)
    raw |= {"id": f"id-{host}", "meta": {"status": "active"}, **more}
    return Service(raw["id"], host, raw["name"], raw)


def action(kind: Kind, host: str, service: Service | None = None, place: Place = PLACE) -> Action:
    """What a plan would ask for; an update is one of the target's address."""
    if kind == "create":
        make: Any = partial(body.fresh, host, mark(host).text, Options(), place, ANCHOR, listen_port=443, proxy_protocol=True)
        return Action(kind, host, "it is wanted", None, make)
    service = service or made(host)
    if kind == "delete":
        return Action(kind, host, "nobody wants it", service)
    if kind == "disable":
        return Action(kind, host, "nobody wants it", service, partial(body.disabled, service, mark(host).gone().text))
    make = partial(body.laid_over, service.raw, host, mark(host).text, Options(), place, ANCHOR, listen_port=443, proxy_protocol=True)
    return Action(kind, host, "it is another", service, make)


class Mesh:
    """Services by id; what was done, in order. ``fails`` is asked before each write (method, host) and before each read ("GET", host)."""

    def __init__(self, *services: Service, fails: Callable[[str, str], Exception | None] = lambda *_: None) -> None:
        self.there = {service.id: service for service in services}
        self.done: list[tuple[str, str]] = []
        self.fails = fails
        self.turns = 1
        self.now = self.most = 0

    async def _call(self, method: str, host: str) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.now -= 1
        error = self.fails(method, host)
        if method != "GET":
            self.done.append((method, host))
        if error is not None:
            raise error

    async def service(self, service_id: str, /) -> Service | None:
        await self._call("GET", service_id.removeprefix("id-"))
        return self.there.get(service_id)

    async def create(self, body: Mapping[str, Any], /) -> Service:
        await self._call("POST", body["domain"])
        service = Service(f"id-{body['domain']}", body["domain"], body["name"], {**body, "id": f"id-{body['domain']}"})
        self.there[service.id] = service
        return service

    async def make_good(self, body: Mapping[str, Any], /) -> Service:
        return await self.create(body)

    async def replace(self, service_id: str, body: Mapping[str, Any], /) -> Service:
        before = self.there[service_id]
        await self._call("PUT", before.host)
        self.there[service_id] = Service(service_id, before.host, body["name"], {**body, "id": service_id})
        return self.there[service_id]

    async def remove(self, service_id: str, /) -> bool:
        await self._call("DELETE", service_id.removeprefix("id-"))
        return self.there.pop(service_id, None) is not None


def run(actions: Sequence[Action], mesh: Mesh, *, concurrency: int = 1, may: Callable[[], None] = lambda: None, **more: Any) -> list[Outcome]:
    return asyncio.run(apply(actions, mesh, more.pop("journal", Journal()), concurrency=concurrency, may=may, **more))


def said(outcomes: Sequence[Outcome]) -> dict[str, str]:
    return {one.action.host: one.kind for one in outcomes}


def api(kind: Any, status: int = 500, **more: Any) -> ApiError:
    return ApiError(kind, "PUT services/x", status, "no", **more)


def only(method: str, error: Exception, *hosts: str) -> Callable[[str, str], Exception | None]:
    return lambda asked, host: error if asked == method and (not hosts or host in hosts) else None


def http(host: str = "a") -> Service:
    return made(host, "old", mode="http", auth={"pin_auth": {"enabled": True}}, access_restrictions={"allowed_cidrs": ["192.0.2.0/24"]})
