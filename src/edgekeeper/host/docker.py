"""The few calls of Docker's Engine API that a watch needs, over the daemon's Unix socket; Podman's compatible socket answers them too.

Not by aiodocker (0.27.0): it brings aiohttp and seven more packages as a second HTTP stack beside the one we have, and its log stream
cannot tell one that broke from one that ended, nor a piece of a line from a whole one (read 2026-11-30). Not by the command ``docker``:
it has no deadline, ends when the container restarts and repeats old lines then.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final
from urllib.parse import quote, urlencode

from edgekeeper.errors import EdgekeeperError, MissingError, StepFailedError
from edgekeeper.host.poll import Response
from edgekeeper.model.container import Container, Which, matches, read
from edgekeeper.model.text import printable

__all__ = ["ASK_S", "SOCKET", "Container", "Docker", "Which", "network", "seconds"]

SOCKET: Final = "/var/run/docker.sock"
ASK_S: Final = 5.0
"""Deadline of a call that only asks. dockerd answers in 1 to 5 ms; one that is being asked by many answers in a second."""
ACT_S: Final = 30.0
"""Deadline of an act, beyond the time that the container is given to stop. A start takes 0.3 s; on a slow disk some seconds."""
_NEWEST = (1, 44)
"""The newest version of the API that this was written for; Docker 29 speaks none that is older, Docker 20.10 none beyond 1.41."""
_CHANGES = ("create", "start", "die", "stop", "pause", "unpause", "rename", "destroy")


class Docker:
    """One daemon, by its socket. Every call has a deadline and raises MissingError (it cannot be reached) or StepFailedError (it refused)."""

    def __init__(self, socket: str = SOCKET) -> None:
        self.socket = socket
        self._prefix = ""

    async def find(self, which: Which) -> Container:
        """The one container that is meant; MissingError when there is none, or more than one that could be."""
        if which.name:
            return await self.inspect(which.name, exact=True)
        listed: list[dict[str, Any]] = await self._ask("/containers/json", all="1", filters=which.filters())
        found = [item for item in listed if matches(which, item)]
        for item in listed:  # the tag has moved on to a newer image: only the container itself knows what it was made from
            if which.image and item not in found and re.fullmatch(r"(sha256:)?[0-9a-f]{12,64}", str(item.get("Image", ""))):
                with contextlib.suppress(MissingError):
                    made = await self.inspect(str(item["Id"]))
                    found += [item] if which.made_from(made.image) else []
        chosen = [item for item in found if item.get("State") in ("running", "paused", "restarting")] or found
        if not chosen:
            msg = f"there is no {which.text} at {self.socket}"
            raise MissingError(msg)
        if len(chosen) > 1:
            names = ", ".join(sorted(printable(str((item.get("Names") or ["?"])[0]).lstrip("/"), 60) for item in chosen)[:5])
            msg = f"the {which.text} is not one but {len(chosen)} at {self.socket} ({names}); name one of them"
            raise MissingError(msg)
        return await self.inspect(str(chosen[0]["Id"]))

    async def inspect(self, name: str, *, exact: bool = False) -> Container:
        """A container by its id or name; ``exact`` refuses one that Docker found because its id begins so."""
        found = read(await self._ask(f"/containers/{quote(name, safe='')}/json", missing=f"there is no container {name} at {self.socket}"))
        if exact and name not in (found.name, found.id, found.id[:12]):
            msg = f"there is no container {name} at {self.socket}"
            raise MissingError(msg)
        return found

    async def restart(self, container: Container, stop_timeout: int | None) -> None:
        """Stop it, KILL it after ``stop_timeout`` seconds (None: its own stop timeout), and start it; one that does not run is started."""
        longest = container.stop_timeout if stop_timeout is None else stop_timeout
        await self._act(container.id, "restart", longest + ACT_S, t="" if stop_timeout is None else str(stop_timeout))

    async def unpause(self, ident: str) -> None:
        """Let a paused container run on."""
        await self._act(ident, "unpause", ACT_S)

    @contextlib.asynccontextmanager
    async def logs(self, ident: str, tail: int | None, *, follow: bool) -> AsyncIterator[AsyncIterator[bytes]]:
        """The last ``tail`` lines (None: all) of both outputs, each with its stamp, and with ``follow`` all that come later.

        As Docker sends it: frames, or bare lines for a container with a terminal. ``since`` is not used: after the clock has
        been set back, dockerd would hold back all that is written until the clock has caught up.
        """
        asked = {"stdout": "1", "stderr": "1", "timestamps": "1", "follow": "1" if follow else "0", "tail": "all" if tail is None else str(tail)}
        async with self._stream(f"/containers/{ident}/logs", asked) as chunks:
            yield chunks

    @contextlib.asynccontextmanager
    async def changes(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """Some bytes whenever a container is made, started, stopped, paused, renamed or removed."""
        async with self._stream("/events", {"filters": json.dumps({"type": ["container"], "event": list(_CHANGES)})}) as chunks:
            yield chunks

    @contextlib.asynccontextmanager
    async def _stream(self, path: str, asked: dict[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        from edgekeeper.host.http import stream  # noqa: PLC0415 - the client's import is not cheap, and few watches need it

        url = await self._url(path, asked)
        with self._told():
            async with stream(url, deadline_s=ASK_S, uds=self.socket) as flow:
                if flow.status != 200:
                    body = b""
                    async for chunk in flow.chunks:
                        body += chunk
                        if len(body) > 4096:
                            break
                    _refused(Response(flow.status, body.decode("utf-8", "replace")), self.socket)
                yield flow.chunks

    async def _ask(self, path: str, missing: str = "", **asked: str) -> Any:
        answer = await self._call("GET", await self._url(path, asked), ASK_S)
        if answer.status == 404 and missing:
            raise MissingError(missing)
        if answer.status != 200:
            _refused(answer, self.socket)
        return _json(answer, self.socket)

    async def _act(self, ident: str, act: str, deadline_s: float, **asked: str) -> None:
        answer = await self._call("POST", await self._url(f"/containers/{ident}/{act}", asked), deadline_s)
        if answer.status not in (200, 204, 304):
            _refused(answer, self.socket)

    async def _url(self, path: str, asked: dict[str, str]) -> str:
        if not self._prefix:
            said = _json(await self._call("GET", "http://docker/version", ASK_S), self.socket)
            words = re.fullmatch(r"(\d{1,3})\.(\d{1,3})", str(said.get("ApiVersion", ""))) if isinstance(said, dict) else None
            if words is None:
                msg = f"what answers at {self.socket} is not Docker's Engine API; name Docker's socket"
                raise MissingError(msg)
            major, minor = min((int(words[1]), int(words[2])), _NEWEST)
            self._prefix = f"http://docker/v{major}.{minor}"
        given = {name: value for name, value in asked.items() if value}
        return f"{self._prefix}{path}?{urlencode(given)}" if given else self._prefix + path

    async def _call(self, method: str, url: str, deadline_s: float) -> Response:
        from edgekeeper.host.http import request  # noqa: PLC0415 - as above

        with self._told():
            return await request(method, url, deadline_s=deadline_s, uds=self.socket)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Say of the socket what the client says of a URL."""
        try:
            yield
        except MissingError as err:
            if err.__cause__ is None:
                raise  # a sentence already
            self._prefix = ""  # the daemon that comes back may be another version
            raise MissingError(_why(err, self.socket)) from err


async def network(docker: Docker, which: Which) -> str:
    """The path of the network namespace of the running container, for whom wants to ask it from inside; MissingError when it does not run."""
    found = await docker.find(which)
    if found.pid <= 0:
        msg = f"container {found.name} does not run ({found.status}); it has no network to ask from"
        raise MissingError(msg)
    return f"/proc/{found.pid}/ns/net"


def seconds(stop_timeout: float) -> int:
    """The stop timeout as the API takes it, in whole seconds, never less than what was said."""
    return math.ceil(max(0.0, stop_timeout))


def _json(answer: Response, socket: str) -> Any:
    try:
        return json.loads(answer.text)
    except ValueError as err:
        msg = f"dockerd at {socket} gave an answer that cannot be read (status {answer.status}); it is asked again"
        raise MissingError(msg) from err


def _refused(answer: Response, socket: str) -> None:
    """Raise what dockerd said: 404 as MissingError, all else as StepFailedError."""
    try:
        said = str(json.loads(answer.text)["message"])
    except (ValueError, KeyError, TypeError):
        said = answer.text
    short = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", said.strip())  # the reason stands at the end, behind long ids
    msg = f"dockerd at {socket} refuses ({answer.status}): {printable(short, 400) or 'no reason given'}"
    kind: type[EdgekeeperError] = MissingError if answer.status == 404 else StepFailedError
    raise kind(msg)


def _why(err: MissingError, socket: str) -> str:
    """Why the daemon cannot be reached, as a sentence about its socket."""
    cause: BaseException | None = err
    while cause is not None:
        if isinstance(cause, TimeoutError):
            return f"dockerd does not answer at {socket} in time; it is asked again"
        if isinstance(cause, OSError) and cause.errno in _REASONS:
            return _REASONS[cause.errno].format(socket)
        cause = cause.__cause__ or cause.__context__
    return f"dockerd at {socket} broke off: {printable(str(err.__cause__ or err), 200)}"


_REASONS: Final = {
    errno.ENOENT: "there is no socket {}; install or start Docker, or name its socket",
    errno.ENOTSOCK: "{} is not a socket; name Docker's socket",
    errno.ECONNREFUSED: "nobody listens at {}; dockerd does not run",
    errno.EACCES: "the socket {} may not be opened by this user; run as root or as a member of its group",
    errno.EPERM: "the socket {} may not be opened by this user; run as root or as a member of its group",
    errno.EAGAIN: "dockerd does not take connections at {}: its queue is full, it hangs",
}
