"""Who we are to a cluster's API, as the header of each request: a token, a file with one that rotates, a password, a program that gives tokens."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from edgekeeper.errors import EdgekeeperError, MissingError
from edgekeeper.host import process
from edgekeeper.host.clock import SystemClock
from edgekeeper.host.files import read_text
from edgekeeper.log import withhold
from edgekeeper.model.text import printable
from edgekeeper.ports import Clock

_EXEC_S = 30.0
"""A program that asks a cloud for a token takes seconds; the request's own deadline begins after it."""
_EARLY_S = 10.0
VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class Login(Protocol):
    """What a request shows of us."""

    async def header(self, *, fresh: bool = False) -> str:
        """The Authorization header's value ("" for none); ``fresh`` after the server refused the former one. MissingError when there is none to be had."""


class Nobody:
    """Nothing to show, or only a client certificate."""

    async def header(self, *, fresh: bool = False) -> str:  # noqa: ARG002 -- a Login's
        """None."""
        return ""


class Token:
    """A token that stays as it is."""

    def __init__(self, token: str) -> None:
        withhold(token)
        self._header = f"Bearer {_line(token, 'the token')}"

    async def header(self, *, fresh: bool = False) -> str:  # noqa: ARG002 -- a Login's
        """The token."""
        return self._header


class Basic:
    """A name and a password."""

    def __init__(self, name: str, password: str) -> None:
        withhold(password)
        self._header = "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()

    async def header(self, *, fresh: bool = False) -> str:  # noqa: ARG002 -- a Login's
        """Both."""
        return self._header


class TokenFile:
    """A file whose token is replaced now and then, as the kubelet does with a service account's: read for each request, it is never an old one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known = ""

    async def header(self, *, fresh: bool = False) -> str:  # noqa: ARG002 -- a Login's
        """The token that the file holds now."""
        token = read_text(self._path, 65536).strip()
        if not token:
            msg = f"{self._path} is empty; the cluster is not asked without a token"
            raise MissingError(msg)
        if token != self._known:
            withhold(token)
            self._known = token
        return f"Bearer {_line(token, self._path)}"


@dataclass
class Exec:
    """A program that prints an ExecCredential with a token (AWS, Azure, Google, OIDC); asked again when the token ends or is refused.

    It gets no terminal, its deadline is 30 s, and what it prints is never logged. Who cannot wait so long is let go, and the next finds its token.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    version: str = VERSIONS[0]
    clock: Clock = field(default_factory=SystemClock)
    _header: str = field(default="", repr=False)
    _ends: float | None = None
    _runs: asyncio.Task[None] | None = None

    async def header(self, *, fresh: bool = False) -> str:
        """The token, from the program when there is none, or no good one."""
        if self._runs is None and (fresh or not self._header or self._over()):
            self._runs = asyncio.create_task(self._ask())
            self._runs.add_done_callback(self._ended)
        if self._runs is not None:  # all who were refused at once: one run answers for all
            await asyncio.shield(self._runs)
        return self._header

    async def _ask(self) -> None:
        self._header, self._ends = await self._run()

    def _ended(self, run: asyncio.Task[None]) -> None:
        self._runs = None
        if not run.cancelled():
            run.exception()  # told to those who still wait

    def _over(self) -> bool:
        return self._ends is not None and self.clock.wall() > self._ends - _EARLY_S

    async def _run(self) -> tuple[str, float | None]:
        info = {"apiVersion": self.version, "kind": "ExecCredential", "spec": {"interactive": False}}
        env = {**os.environ, **self.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            done, complaints = await process.reply((self.command, *self.args), _EXEC_S, env)
        except EdgekeeperError as err:
            msg = f"the kubeconfig's credential program gave no token: {err}; the cluster is not asked"
            raise MissingError(msg) from err
        if done.code:
            msg = f"the kubeconfig's credential program {self.command} ended with {done.code}: {printable(complaints.strip(), 200)}; the cluster is not asked"
            raise MissingError(msg)
        try:
            status = json.loads(done.output)["status"]
            token, until = status["token"], status.get("expirationTimestamp")
            ends = datetime.fromisoformat(until).timestamp() if until else None
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):  # its text may hold the secret: it is not repeated
            msg = f"the kubeconfig's credential program {self.command} printed no ExecCredential with a token; the cluster is not asked"
            raise MissingError(msg) from None
        shown = f"Bearer {_line(token, self.command)}"
        withhold(token)
        return shown, ends


def _line(token: Any, where: str) -> str:
    """A token that is one header line and nothing else."""
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        msg = f"{where} holds no token of one line; the cluster is not asked"
        raise MissingError(msg)
    return token
