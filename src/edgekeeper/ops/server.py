"""``/healthz/live``, ``/healthz/ready``, ``/status``, ``/metrics``: read-only, small, and guarded off loopback."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
import ssl
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from edgekeeper.config.kinds import split_host_port
from edgekeeper.config.ops import Ops
from edgekeeper.errors import MissingError
from edgekeeper.log import Event, emit

PATIENCE_S = 10.0
"""How long a connection may do nothing, or take over one request: 200 that only stand there would answer 503 to everybody else."""


@dataclass(frozen=True, slots=True)
class Voice:
    """What the server asks for each page: it holds nothing itself. ``status`` is given the roles that are asked about; None is all of them."""

    status: Callable[[Collection[str] | None], dict[str, Any]]
    ready: Callable[[], tuple[bool, str]]
    metrics: Callable[[], bytes]


class _KnowsItsClient(H11Protocol):
    """Tells the pages whether the client showed a certificate (that the CA signed: TLS has checked it); lets no client stand there for ever."""

    @override
    def connection_made(self, transport: Any) -> None:
        self.app_state = {**self.app_state, "certified": bool(transport.get_extra_info("peercert"))}
        super().connection_made(transport)
        asyncio.get_running_loop().call_later(PATIENCE_S, self._look, None)

    def _look(self, before: Any) -> None:
        """Close the connection when there is no other request than at the last look; one whose client only dribbles is never a request."""
        if self.transport.is_closing():
            return
        if self.cycle is before:
            self.transport.abort()
        else:
            asyncio.get_running_loop().call_later(PATIENCE_S, self._look, self.cycle)


class _Server(uvicorn.Server):
    """A server that leaves signals to its owner, and says where it listens once it does."""

    listen = ""

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            emit(Event.OPS_LISTENING, f"health, status and metrics on {self.listen}")

    @override
    async def main_loop(self) -> None:
        """Wait for the end: uvicorn's own loop wakes up ten times a second, a fifth of all that an idle role does."""
        while not self.should_exit:  # noqa: ASYNC110 - uvicorn sets a flag, and tells nobody
            await asyncio.sleep(PATIENCE_S)

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def pages(voice: Voice, token: str | None, *, certificates: bool) -> Starlette:
    """The application. ``/healthz/*`` is open; the rest needs the token, or a certificate, where one is set."""

    def allowed(request: Request) -> bool:
        if token is None and not certificates:
            return True
        if certificates and getattr(request.state, "certified", False):
            return True
        given = request.headers.get("authorization", "")
        return token is not None and hmac.compare_digest(given.encode(), f"Bearer {token}".encode())

    def guarded(page: Callable[[Request], Response]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return page(request) if allowed(request) else PlainTextResponse("a bearer token or a client certificate is needed\n", 401)

        return answer

    async def live(_: Request) -> Response:
        return PlainTextResponse("live\n")

    async def ready(_: Request) -> Response:
        well, why = voice.ready()
        return PlainTextResponse(f"{'ready' if well else 'not ready'}: {why}\n", 200 if well else 503)

    return Starlette(
        routes=[
            Route("/healthz/live", live),
            Route("/healthz/ready", ready),
            Route("/status", guarded(lambda request: JSONResponse(voice.status(_roles(request))))),
            Route("/metrics", guarded(lambda _: Response(voice.metrics(), media_type="text/plain; version=0.0.4"))),
        ]
    )


def _roles(request: Request) -> Collection[str] | None:
    """Those of ``?role=dns,vip``, which may be repeated; None when it is not there. What a peer asks often is then cheap to tell."""
    given = request.query_params.getlist("role")
    return {name.strip() for text in given for name in text.split(",")} if given else None


async def serve(ops: Ops, default_listen: str, voice: Voice, token: str | None) -> None:
    """Serve until cancelled. MissingError when the address cannot be listened on."""
    listen = ops.listen or default_listen
    host, port = split_host_port(listen)
    config = uvicorn.Config(
        pages(voice, token, certificates=ops.client_ca is not None),
        host=host,
        port=port,
        http=_KnowsItsClient,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
        limit_concurrency=200,
        server_header=False,
        date_header=False,  # it would be that of the start
        ssl_certfile=ops.certificate,
        ssl_keyfile=ops.key,
        ssl_ca_certs=ops.client_ca,
        ssl_cert_reqs=ssl.CERT_OPTIONAL if ops.client_ca else ssl.CERT_NONE,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as err:
        msg = f"ops cannot serve HTTPS with {ops.certificate}, {ops.key}: {err.strerror or err}; nothing is served on {listen}, the engine goes on"
        raise MissingError(msg) from err
    server = _Server(config)
    server.listen = listen
    try:
        await server.serve()
    except SystemExit as err:  # uvicorn's way of saying that it could not bind
        msg = f"ops cannot listen on {listen} (is it taken?); health, status and metrics are not served, the engine goes on"
        raise MissingError(msg) from err
    finally:
        if server.started:  # uvicorn closes nothing when it is cancelled
            for each in server.servers:
                each.close()
            for connection in list(server.server_state.connections):
                connection.shutdown()
