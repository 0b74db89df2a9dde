"""NetBird's management API, as much of it as publishing needs: each call under a deadline, told apart when it fails, never faster than it bears."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

from edgekeeper import __version__
from edgekeeper.errors import MissingError
from edgekeeper.expose import netbird_say as say
from edgekeeper.expose.kinds import Service
from edgekeeper.expose.netbird_say import ApiError, Group, Network, Policy, Resource, Router, UnreadableError
from edgekeeper.expose.throttle import Throttle
from edgekeeper.host.http import Client, Response
from edgekeeper.host.tls import NOBODY, Trust
from edgekeeper.ports import Clock

T = TypeVar("T")
Token = Callable[[], Awaitable[str]]
Counted = Callable[[str, str, int], None]
"""Told of each call: its method, what it was about, and the status (0: no answer)."""

_LIMIT: Final = 64 * 2**20
"""10,000 services are 7 MB."""

_TRIES: Final = 3
_PATIENCE_S: Final = 600.0
"""A call that could not go for so long, because the server refuses so many, is an error: its pass ends and another one begins."""

_owed: ContextVar[bool] = ContextVar("owed", default=False)
"""Whether the call that is under way makes good what its own act has taken away."""


class NetBird:
    """The server at ``url`` (without /api); ``async with`` it. Every method raises ApiError, or what reading the token raises.

    ``token`` is asked by ``services``, which begins a pass, and again when the server does not accept what it gave. ``timeout_s`` is for
    each call; waiting for ``throttle`` is not in it. A call that was refused for its number (429) is made again after the pause;
    nothing else is tried again from here: a write whose answer was lost may have been done, and the next pass sees it.
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        timeout_s: float,
        clock: Clock,
        trust: Trust = NOBODY,
        throttle: Throttle | None = None,
        counted: Counted | None = None,
        connections: int = 16,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.url = url.rstrip("/")
        self.throttle = throttle or Throttle()
        self.may: Callable[[], None] = lambda: None
        """Asked right before each write goes out; what it raises is raised. Who has waited for the throttle may not be the one writer any more."""
        self._read_token = token
        self._token: str | None = None
        self._timeout_s = timeout_s
        self._clock = clock
        self._counted = counted
        self._sleep = sleep
        self._client = Client(trust, connections=connections, limit=_LIMIT)
        self._slots = asyncio.Semaphore(connections)  # so that waiting for a connection is not in the deadline
        self._queue = asyncio.Lock()
        self._tokens = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections."""
        await self._client.close()

    @property
    def throttled(self) -> int:
        """How many calls were refused for their number so far."""
        return self.throttle.refused

    def waiting_s(self) -> float:
        """Seconds until the next call may go; 0 when nothing is held back."""
        return self.throttle.wait_s(self._clock.monotonic())

    # services

    async def services(self) -> tuple[Service, ...]:
        """All services of the account; the token is read anew."""
        self._token = await self._read_token()
        try:
            return await self._list("services", "services", "reverse-proxies/services", say.service)
        except ApiError as err:
            if err.kind != "absent":
                raise
            why = f"so there is no such API at {self.url} (expose.netbird.url is the server's address, without /api)"
            raise ApiError(err.kind, "services cannot be listed", err.status, why) from err

    async def service(self, sid: str) -> Service | None:
        """One service as it is now; None when there is none of this id."""
        return await self._one_or_none("services", f"service {sid} cannot be read", f"reverse-proxies/services/{quote(sid, safe='')}", say.service)

    async def create(self, body: Mapping[str, Any]) -> Service:
        """Make a service."""
        return await self._write("POST", "services", f"{body.get('domain')} cannot be published", "reverse-proxies/services", body, say.service)

    async def make_good(self, body: Mapping[str, Any]) -> Service:
        """Make a service in the place of one that the same act has deleted: that is owed, whoever leads by now. Who leads may have made it: ``taken``."""
        before = _owed.set(True)
        try:
            return await self.create(body)
        finally:
            _owed.reset(before)

    async def replace(self, sid: str, body: Mapping[str, Any]) -> Service:
        """Write a service in whole: what the body does not hold is reset, and the connections of its clients are cut."""
        what = f"the service of {body.get('domain')} cannot be changed"
        return await self._write("PUT", "services", what, f"reverse-proxies/services/{quote(sid, safe='')}", body, say.service)

    async def remove(self, sid: str) -> bool:
        """Delete a service; False when there was none of this id."""
        path = f"reverse-proxies/services/{quote(sid, safe='')}"
        try:
            await self._call("DELETE", "services", f"service {sid} cannot be deleted", path, None, lambda text: say.item(text, say.done))
        except ApiError as err:
            if err.kind == "absent":
                return False
            raise
        return True

    # what the targets stand on

    async def networks(self) -> tuple[Network, ...]:
        """All networks of the account."""
        return await self._list("networks", "networks", "networks", say.network)

    async def create_network(self, body: Mapping[str, Any]) -> Network:
        """Make a network."""
        return await self._write("POST", "networks", f"network {body.get('name')} cannot be made", "networks", body, say.network)

    async def resources(self, network: str) -> tuple[Resource, ...]:
        """The resources of a network; the server says null when there are none."""
        return await self._list("resources", "resources", f"networks/{quote(network, safe='')}/resources", say.resource, null=True)

    async def create_resource(self, network: str, body: Mapping[str, Any]) -> Resource:
        """Make a resource."""
        what = f"resource {body.get('name')} cannot be made"
        return await self._write("POST", "resources", what, f"networks/{quote(network, safe='')}/resources", body, say.resource)

    async def replace_resource(self, network: str, rid: str, body: Mapping[str, Any]) -> Resource:
        """Write a resource in whole: the server sends all services to the proxies again, which cuts every connection through them."""
        what = f"resource {body.get('name')} cannot be changed"
        return await self._write("PUT", "resources", what, f"networks/{quote(network, safe='')}/resources/{quote(rid, safe='')}", body, say.resource)

    async def routers(self, network: str) -> tuple[Router, ...]:
        """The routers of a network."""
        return await self._list("routers", "routers", f"networks/{quote(network, safe='')}/routers", say.router, null=True)

    async def create_router(self, network: str, body: Mapping[str, Any]) -> Router:
        """Make a router."""
        return await self._write("POST", "routers", "the router cannot be made", f"networks/{quote(network, safe='')}/routers", body, say.router)

    async def replace_router(self, network: str, rid: str, body: Mapping[str, Any]) -> Router:
        """Write a router in whole."""
        path = f"networks/{quote(network, safe='')}/routers/{quote(rid, safe='')}"
        return await self._write("PUT", "routers", "the router cannot be changed", path, body, say.router)

    async def group(self, name: str) -> Group | None:
        """The group of this name; None when there is none."""
        try:
            found = await self._list("groups", f"group {name}", f"groups?name={quote(name, safe='')}", say.group)
        except ApiError as err:
            if err.kind == "absent":
                return None
            raise
        return next((one for one in found if one.name == name), None)

    async def policies(self) -> tuple[Policy, ...]:
        """All policies of the account."""
        return await self._list("policies", "policies", "policies", say.policy)

    async def create_policy(self, body: Mapping[str, Any]) -> Policy:
        """Make a policy."""
        return await self._write("POST", "policies", f"policy {body.get('name')} cannot be made", "policies", body, say.policy)

    # how

    async def _list(self, label: str, whose: str, path: str, one: Callable[[Any], T], *, null: bool = False) -> tuple[T, ...]:
        return await self._call("GET", label, f"{whose} cannot be listed", path, None, lambda text: say.items(text, one, null=null))

    async def _one_or_none(self, label: str, what: str, path: str, one: Callable[[Any], T]) -> T | None:
        try:
            return await self._call("GET", label, what, path, None, lambda text: say.item(text, one))
        except ApiError as err:
            if err.kind == "absent":
                return None
            raise

    async def _write(self, method: str, label: str, what: str, path: str, body: Mapping[str, Any], one: Callable[[Any], T]) -> T:
        return await self._call(method, label, what, path, say.body(body), lambda text: say.item(text, one))

    async def _call(self, method: str, label: str, what: str, path: str, body: bytes | None, read: Callable[[str], T]) -> T:
        write = method != "GET"
        answer = await self._answer(method, label, what, path, body)
        if not 200 <= answer.status < 300:
            raise say.problem(what, answer.status, answer.text, again_s=self.waiting_s() if answer.status == 429 else None, write=write)
        if method == "DELETE" and answer.status == 204:
            return read("{}")
        try:
            return read(answer.text)
        except UnreadableError as err:
            raise say.broken(what, answer.status, str(err), write=write) from None

    async def _answer(self, method: str, label: str, what: str, path: str, body: bytes | None) -> Response:
        """The server's answer; once more with another token, and a few times more after the pause when it refuses so many calls."""
        until = self._clock.monotonic() + _PATIENCE_S
        refused = 0
        renewed = False
        while True:
            await self._turn(what, until)
            token = self._token or await self._renewed("")
            answer = await self._once(method, label, what, path, body, token)
            if answer.status == 429 and (refused := refused + 1) < _TRIES:
                continue
            if answer.status == 401 and not renewed:
                renewed = True
                if await self._renewed(token) != token:
                    continue
            return answer

    async def _once(self, method: str, label: str, what: str, path: str, body: bytes | None, token: str) -> Response:
        async with self._slots:
            if method != "GET" and not _owed.get():
                self.may()
            begun = self._clock.monotonic()
            status = 0
            try:
                answer = await self._client.request(
                    method, f"{self.url}/api/{path}", deadline_s=self._timeout_s, headers=_headers(token, json=body is not None), body=body
                )
                status = answer.status
            except MissingError as err:
                raise say.unreachable(what, str(err), write=method != "GET") from err
            finally:
                if self._counted is not None:
                    self._counted(method, label, status)
        self.throttle = self.throttle.refuse(begun, self._clock.monotonic()) if status == 429 else self.throttle.bore(begun)
        return answer

    async def _turn(self, what: str, until: float) -> None:
        """Wait for the throttle, in the order of coming."""
        async with self._queue:
            while (wait := self.throttle.wait_s(now := self._clock.monotonic())) > 0:
                if now + wait > until:
                    raise say.problem(what, 429, '{"message": "too many requests"}', again_s=wait)
                await self._sleep(wait)
            self.throttle = self.throttle.went(now)

    async def _renewed(self, old: str) -> str:
        """The token after it was found wanting: another call may have read it already."""
        async with self._tokens:
            if self._token is None or self._token == old:
                self._token = await self._read_token()
            return self._token


def _headers(token: str, *, json: bool) -> dict[str, str]:
    scheme = "Bearer" if token.startswith("eyJ") else "Token"  # a JWT, else a personal access token
    made = {"Authorization": f"{scheme} {token}", "Accept": "application/json", "User-Agent": f"edgekeeper/{__version__}"}
    return {**made, "Content-Type": "application/json"} if json else made
