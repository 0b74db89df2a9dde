"""An API of bytes: each request is answered by what the test says, as the real one was recorded to answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx2

from edgekeeper.kube.access import Access
from edgekeeper.kube.client import Api
from edgekeeper.kube.login import Login, Nobody

SERVER = "http://192.0.2.1:6443"
FOR_EVER = object()
BREAKS = object()


class Stream(httpx2.AsyncByteStream):
    """Parts of an answer; FOR_EVER is silence, BREAKS a connection that is gone."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            if part is FOR_EVER:
                await asyncio.Event().wait()
            if part is BREAKS:
                msg = "peer closed connection"
                raise httpx2.RemoteProtocolError(msg)
            yield part

    async def aclose(self) -> None:
        pass


def answer(*parts: Any, status: int = 200, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, stream=Stream(parts), headers=headers)


def status(code: int, message: str, **more: Any) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code, **more}).encode()


def ingress(name: str, version: str, host: str = "a.example", namespace: str = "shop") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": version}, "spec": {"rules": [{"host": host}]}}


def listing(*items: Any, version: str = "10", go_on: str = "") -> httpx2.Response:
    meta = {"resourceVersion": version, **({"continue": go_on} if go_on else {})}
    return answer(json.dumps({"kind": "IngressList", "metadata": meta, "items": list(items)}).encode())


def line(what: str, obj: Any) -> bytes:
    return json.dumps({"type": what, "object": obj}).encode() + b"\n"


def expired_line() -> bytes:
    return line("ERROR", json.loads(status(410, "too old resource version: 1 (20)", reason="Expired")))


class Stub:
    """The answers in order (the last one again and again), and what was asked."""

    def __init__(self, *answers: Callable[[], httpx2.Response] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[httpx2.Request] = []
        self.times: list[float] = []

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        self.times.append(asyncio.get_running_loop().time())
        chosen = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(chosen, Exception):
            raise chosen
        return chosen()

    def api(self, *, servers: Sequence[str] = (), login: Login | None = None, server: str = SERVER, name: str = "192.0.2.1", **times: float) -> Api:
        return Api(Access(server, name, login or Nobody()), servers=servers, transport=httpx2.MockTransport(self), **times)
