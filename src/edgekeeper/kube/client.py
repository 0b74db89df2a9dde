"""The API of a cluster: one typed call a question, each with a deadline, no retry hidden inside, and another server for the next one when one is silent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import httpx2

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.errors import EdgekeeperError
from edgekeeper.kube import access as accesses
from edgekeeper.kube import answer, decide
from edgekeeper.kube.access import Access
from edgekeeper.kube.answer import Listed
from edgekeeper.kube.errors import Absent, Expired, Unreachable
from edgekeeper.kube.objects import Object, key, meta
from edgekeeper.model.text import printable

__all__ = ["Api", "Listed", "connect"]

T = TypeVar("T", bound=Object)

WINDOW_S = 10
"""How long one watch request lasts: the server ends it in good order, so a silence of more than this is a dead server."""
_MOST = 256 * 2**20
_LINE_MOST = 32 * 2**20
"""An object in etcd has 1.5 MiB at most, by default."""
_FAILURES = (OSError, EOFError, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)
_NOT_WELL = (502, 503, 504)
_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]


def connect(wanted: Kubernetes, *, server: str | None = None) -> Api:
    """The API of the cluster that the config means, not asked yet; ``server`` asks this address instead of all others.

    MissingError: the extra is not installed, the kubeconfig is not there, this is no pod. UsageError: the kubeconfig cannot be used.
    """
    api = Api(accesses.find(wanted), servers=wanted.servers, timeout_s=wanted.timeout, silence_s=wanted.silence)
    return api if server is None else api.at(server)


class _Wire:
    """The connections to one server; once it is not the one in use any more, its last user closes them."""

    def __init__(self, server: str, access: Access, transport: httpx2.AsyncBaseTransport | None) -> None:
        self.server = server
        self.name = access.name
        made = transport or httpx2.AsyncHTTPTransport(verify=access.context(server), trust_env=False, socket_options=_KEEPALIVE)
        self.client = httpx2.AsyncClient(transport=made, timeout=None, trust_env=False)
        self.users = 0


class Api:
    """A cluster's API. Use it with ``async with``, or ``close`` it; belongs to one event loop."""

    def __init__(
        self,
        access: Access,
        *,
        servers: Sequence[str] = (),
        timeout_s: float = 5.0,
        silence_s: float = 15.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._access = access
        self.servers = tuple(dict.fromkeys(server.rstrip("/") for server in (access.server, *servers)))
        self.server = self.servers[0]
        self.timeout_s = timeout_s
        self.silence_s = silence_s
        self.namespace = access.namespace
        self._transport = transport
        self._wire: _Wire | None = None
        self._answered = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let all connections go."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.client.aclose()

    async def pass_on(self) -> None:
        """The server in use was silent for longer than its asker could wait: the next question goes to the next one, over a new connection."""
        wire = self._wire
        if wire is not None:
            self._lost(wire)
            if not wire.users:
                await wire.client.aclose()

    def at(self, server: str) -> Api:
        """The same rights at this address, and at no other."""
        made = Api(self._access, timeout_s=self.timeout_s, silence_s=self.silence_s, transport=self._transport)
        made.servers = (server.rstrip("/"),)
        made.server = made.servers[0]
        return made

    async def list(self, kind: type[T], *, namespace: str | None = None, labels: str | None = None, fields: str | None = None, chunk: int = 500) -> Listed[T]:
        """All objects of a kind, in one namespace or in all: the full list or an error, never a part."""
        try:
            pages = [page async for page in self.pages(kind, namespace=namespace, labels=labels, fields=fields, chunk=chunk)]
        except Expired:  # the pages took longer than the server keeps the past: all at once, then
            pages = [page async for page in self.pages(kind, namespace=namespace, labels=labels, fields=fields, chunk=0)]
        return Listed([item for page in pages for item in page.items], pages[-1].version)

    async def pages(
        self, kind: type[T], *, namespace: str | None = None, labels: str | None = None, fields: str | None = None, chunk: int = 500
    ) -> AsyncGenerator[Listed[T], None]:
        """The same list in parts; it is full only once it has ended without an error. The last part's version counts."""
        params = _given(labelSelector=labels, fieldSelector=fields, limit=str(chunk) if chunk else None)
        while True:
            raw = await self._ask("GET", answer.path(kind, namespace), f"list {answer.named(kind)}", params)
            items, version, go_on = answer.page(kind, raw, self.server)
            yield Listed(items, version)
            if not go_on:
                return
            params["continue"] = go_on

    async def get(self, kind: type[T], name: str, *, namespace: str | None = None) -> T | None:
        """One object; None when it is not there."""
        try:
            raw = await self._ask("GET", answer.path(kind, namespace, name), f"get {_text(kind, namespace, name)}")
        except Absent:
            return None
        return answer.one(kind, raw, self.server)

    async def create(self, obj: T, *, namespace: str | None = None, dry_run: bool = False) -> T:
        """Make an object (or act by one, as a PodEviction does), in its own namespace when none is given; Conflict when it exists."""
        kind, of = type(obj), meta(obj)
        where = namespace or of.namespace
        acts = answer.acts(kind)
        raw = await self._ask(
            "POST", answer.path(kind, where, of.name if acts else None), f"create {_text(kind, where, of.name)}", _write(dry_run=dry_run), answer.body(obj)
        )
        return obj if acts else answer.one(kind, raw, self.server)

    async def replace(self, obj: T, *, subresource: str | None = None, dry_run: bool = False) -> T:
        """Write the whole object; Conflict when it is not any more what its ``resourceVersion`` says."""
        kind, (namespace, name) = type(obj), key(obj)
        raw = await self._ask(
            "PUT", answer.path(kind, namespace, name, subresource), f"update {_text(kind, namespace, name)}", _write(dry_run=dry_run), answer.body(obj)
        )
        return answer.one(kind, raw, self.server)

    async def patch(
        self,
        kind: type[T],
        name: str,
        body: object,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        how: str = "merge",
        owner: str = "edgekeeper",
        force: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Change a part: ``how`` is merge, strategic, json (a list of operations) or apply (``force`` takes fields from others; else Conflict)."""
        params = _write(dry_run=dry_run, owner=owner) | ({"force": "true"} if how == "apply" and force else {})
        raw = await self._ask(
            "PATCH",
            answer.path(kind, namespace, name, subresource),
            f"patch {_text(kind, namespace, name, subresource)}",
            params,
            answer.change(kind, body, how),
            {"Content-Type": answer.PATCHES[how]},
        )
        return answer.one(kind, raw, self.server)

    async def delete(
        self, kind: type[T], name: str, *, namespace: str | None = None, uid: str | None = None, grace_s: int | None = None, dry_run: bool = False
    ) -> None:
        """Take an object away; with ``uid`` only this very one (else Conflict). Absent when it is not there."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        options |= {"preconditions": {"uid": uid}} if uid else {}
        options |= {"gracePeriodSeconds": grace_s} if grace_s is not None else {}
        options |= {"dryRun": ["All"]} if dry_run else {}
        await self._ask("DELETE", answer.path(kind, namespace, name), f"delete {_text(kind, namespace, name)}", {}, answer.encoded(options))

    async def may(self, verb: str, group: str, resource: str, namespace: str | None = None) -> bool:
        """Whether we have this right (in all namespaces when none is given); ``resource`` may have a subresource: ``pods/eviction``."""
        main, _, sub = resource.partition("/")
        about = _given(verb=verb, group=group, resource=main, subresource=sub or None, namespace=namespace)
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": about}}
        doing = f"say whether we may {verb} {resource}"
        raw = await self._ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", doing, {}, answer.encoded(body))
        return answer.allowed(raw, self.server)

    async def version(self) -> str:
        """The server's version: ``v1.34.2``."""
        return answer.version(await self._ask("GET", "/version", "tell its version"), self.server)

    async def watch(
        self, kind: type[T], *, namespace: str | None = None, labels: str | None = None, fields: str | None = None, version: str, window_s: int = WINDOW_S
    ) -> AsyncGenerator[tuple[str, T], None]:
        """What happens to a kind after ``version``, for one window; then it ends, and its next one begins with the version of the last event.

        ADDED, MODIFIED, DELETED, and BOOKMARK whose object has nothing but a version to go on from. Expired: list again. Unreachable: the
        server was silent for ``silence``, or the connection broke; what came before is true. Use it with ``contextlib.aclosing``.
        """
        doing = f"watch {answer.named(kind)}"
        params = _given(labelSelector=labels, fieldSelector=fields)
        params |= {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": str(window_s)}
        async with self._open(answer.path(kind, namespace), doing, params) as (wire, chunks):
            rest = b""
            while (chunk := await self._next(wire, chunks, doing)) is not None:
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > _LINE_MOST:
                    msg = f"{wire.server} sent a line of more than {_LINE_MOST} bytes ({doing}); it is not used"
                    raise Unreachable(msg)
                for line in lines:
                    if line.strip():
                        yield answer.event(kind, line, wire.server)
            if rest.strip():
                msg = f"{wire.server} ended in the middle of an event ({doing}); it is asked again from the last whole one"
                raise Unreachable(msg)

    async def _ask(
        self, method: str, path: str, doing: str, params: Mapping[str, str] | None = None, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """One question and its whole answer. Until one of the servers has answered, all are asked what changes nothing: a command, or a cure, asks once."""
        for _ in self.servers[1:] if method == "GET" else ():
            used = self.server
            try:
                return await self._ask_one(method, path, doing, params, body, headers)
            except Unreachable:
                if self._answered or self.server == used:
                    raise
        return await self._ask_one(method, path, doing, params, body, headers)

    async def _ask_one(
        self, method: str, path: str, doing: str, params: Mapping[str, str] | None, body: bytes | None, headers: Mapping[str, str] | None
    ) -> bytes:
        """One server's answer, within the deadline from the first packet to the last byte."""
        shown: str | None = None
        while True:
            former = shown
            shown = await self._access.login.header(fresh=former is not None)
            async with (
                self._wired() as wire,
                self._told(wire, doing, self.timeout_s),
                asyncio.timeout(self.timeout_s),
                _sent(wire, method, path, params or {}, body, {**(headers or {}), **_shown(shown)}) as response,
            ):
                raw = await _whole(response, wire.server, doing)
            self._answered = self._answered or response.status_code not in _NOT_WELL
            if response.is_success:
                return raw
            if response.status_code != 401 or former is not None:
                raise self._refused(wire, response, raw, doing)
            await self._show_anew(wire)

    @contextlib.asynccontextmanager
    async def _open(self, path: str, doing: str, params: Mapping[str, str]) -> AsyncIterator[tuple[_Wire, AsyncIterator[bytes]]]:
        """The answer to a watch, as it comes; its head within the deadline."""
        shown: str | None = None
        while True:
            former = shown
            shown = await self._access.login.header(fresh=former is not None)
            async with self._wired() as wire, contextlib.AsyncExitStack() as stack:
                async with self._told(wire, doing, self.timeout_s), asyncio.timeout(self.timeout_s):
                    response = await stack.enter_async_context(_sent(wire, "GET", path, params, None, _shown(shown)))
                    raw = b"" if response.is_success else await _whole(response, wire.server, doing)
                if response.is_success:
                    yield wire, response.aiter_bytes()
                    return
                if response.status_code != 401 or former is not None:
                    raise self._refused(wire, response, raw, doing)
                await self._show_anew(wire)

    async def _next(self, wire: _Wire, chunks: AsyncIterator[bytes], doing: str) -> bytes | None:
        async with self._told(wire, doing, self.silence_s), asyncio.timeout(self.silence_s):
            return await anext(chunks, None)

    @contextlib.asynccontextmanager
    async def _wired(self) -> AsyncIterator[_Wire]:
        """The connections to the server in use."""
        if self._wire is None:
            self._wire = _Wire(self.server, self._access, self._transport)
        wire = self._wire
        wire.users += 1
        try:
            yield wire
        finally:
            wire.users -= 1
            if wire is not self._wire and not wire.users:
                await wire.client.aclose()

    @contextlib.asynccontextmanager
    async def _told(self, wire: _Wire, doing: str, deadline_s: float) -> AsyncIterator[None]:
        """Whatever goes wrong with a question, as Unreachable with its reason."""
        try:
            yield
        except TimeoutError as err:
            self._lost(wire)
            msg = f"{wire.server} did not answer within {deadline_s:g} s ({doing})"
            raise Unreachable(msg) from err
        except _FAILURES as err:
            self._lost(wire)
            why = _cause(err)
            msg = f"{wire.server} did not answer ({doing}): {type(why).__name__} {printable(str(why), 200)}".rstrip()
            raise Unreachable(msg) from err

    def _refused(self, wire: _Wire, response: httpx2.Response, raw: bytes, doing: str) -> EdgekeeperError:
        if response.status_code in _NOT_WELL:
            self._lost(wire)
        return answer.refusal(response.status_code, raw, server=wire.server, doing=doing, again=response.headers.get("Retry-After", ""))

    async def _show_anew(self, wire: _Wire) -> None:
        """The server does not know who asks: a token or a certificate may just have been renewed, and the newest one is shown, once.

        A certificate belongs to the connection, and what was read once stays with all that are made of it.
        """
        if wire is self._wire and self._access.certificate.file:
            self._wire = None
            if not wire.users:
                await wire.client.aclose()

    def _lost(self, wire: _Wire) -> None:
        """After a failure nothing that is open to this server is used again: behind a balancer a new connection may reach another server."""
        if wire is self._wire:
            self._wire = None
            self.server = decide.following(self.servers, wire.server)


@contextlib.asynccontextmanager
async def _sent(
    wire: _Wire, method: str, path: str, params: Mapping[str, str], body: bytes | None, headers: Mapping[str, str]
) -> AsyncIterator[httpx2.Response]:
    sockets: list[Any] = []

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            sockets.append(info["return_value"])

    sent = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "edgekeeper"}
    sent |= {"Content-Type": "application/json"} if body is not None else {}
    extensions = {"trace": trace, "sni_hostname": wire.name}
    try:
        async with wire.client.stream(
            method, wire.server + path, params=dict(params), content=body, headers={**sent, **headers}, extensions=extensions
        ) as made:
            yield made
    except BaseException:
        for made_socket in sockets:  # the library forgets the socket of a server that hangs in the TLS handshake
            await made_socket.aclose()
        raise


async def _whole(response: httpx2.Response, server: str, doing: str) -> bytes:
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) > _MOST:
            msg = f"{server} answered more than {_MOST} bytes ({doing}); the answer is not used"
            raise Unreachable(msg)
    return bytes(read)


def _cause(err: BaseException) -> BaseException:
    """What is behind it: of a connection that was not made the library says that, and not why."""
    while str(err) == "All connection attempts failed" and (behind := err.__cause__ or err.__context__) is not None:
        err = behind
    return err.exceptions[0] if isinstance(err, BaseExceptionGroup) else err


def _shown(header: str) -> dict[str, str]:
    return {"Authorization": header} if header else {}


def _given(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _write(*, dry_run: bool, owner: str = "edgekeeper") -> dict[str, str]:
    return {"fieldManager": owner} | ({"dryRun": "All"} if dry_run else {})


def _text(kind: type[Object], namespace: str | None, name: str | None, subresource: str | None = None) -> str:
    """``ingresses.networking.k8s.io shop/web``."""
    what = answer.named(kind) + (f"/{subresource}" if subresource else "")
    return printable(f"{what} {namespace}/{name}" if namespace else f"{what} {name}", 300)
