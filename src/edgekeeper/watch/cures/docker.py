"""Restart a container."""

from __future__ import annotations

from edgekeeper.errors import EdgekeeperError, StepFailedError
from edgekeeper.host.docker import Container, Docker, Which, seconds
from edgekeeper.watch.stamp import iso

SINCE_MOST_S = 120.0
"""A start that lies further ahead of the evidence than this is no start since: the machine's clock was set back."""


class DockerCure:
    """``docker restart``, and the proof that the container was started anew. A ``seams.Cure``.

    The container gets its own stop timeout, or ``stop_timeout`` in seconds (in whole ones, as Docker wants them); the deadline is 30 s
    more. One that is paused is restarted too, one that has exited or waits for its restart policy is started. Nothing is ever removed.
    Docker 20.10.24 and 28.5.2 do all of that by one call, in 0.2 to 0.4 s where the service ends at once (measured 2026-11-30).
    """

    def __init__(self, docker: Docker, which: Which, stop_timeout: float | None = None) -> None:
        self.name = f"docker restart {which.name or which.text}"
        self._docker = docker
        self._which = which
        self._stop_timeout = stop_timeout

    async def ready(self, *, ours: bool, since: float) -> str | None:
        """Whether there is one container that is meant, nobody has stopped it, and it is the one that failed, not one that was started since."""
        try:
            found = await self._docker.find(self._which)
        except EdgekeeperError as err:
            return str(err)
        if found.status in {"created", "exited", "dead"} and not ours:
            return f"container {found.name} is {found.status}: somebody stopped it, or its restart policy gave up; that is no wedge, so start it yourself"
        if since < (iso(found.started.encode()) or 0.0) < since + SINCE_MOST_S and not ours:
            return f"container {found.name} was started after the probe had failed; it has to fail again"
        return None

    async def apply(self) -> str | None:
        """Restart it; None when it runs and was started since, else the sentence that says why not."""
        try:
            before = await self._docker.find(self._which)
            await self._restart(before, None if self._stop_timeout is None else seconds(self._stop_timeout))
            after = await self._docker.inspect(before.id)
        except EdgekeeperError as err:
            return str(err)
        return _proof(before, after)

    async def _restart(self, container: Container, stop_timeout: int | None) -> None:
        try:
            await self._docker.restart(container, stop_timeout)
        except StepFailedError:
            if container.status != "paused":
                raise
            await self._docker.unpause(container.id)  # Podman 4.3.1 restarts none that is paused
            await self._docker.restart(container, stop_timeout)


def _proof(before: Container, after: Container) -> str | None:
    if (iso(after.started.encode()) or 0.0) <= (iso(before.started.encode()) or 0.0):
        return f"Docker says that container {after.name} was restarted, but it was not started anew"
    if after.status != "running":
        return f"container {after.name} was started and is {after.status} again; its log says why"
    return None
