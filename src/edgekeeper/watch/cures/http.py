"""Send a request that cures: for a lighter cure than a restart, such as that of one part of the service."""

from __future__ import annotations

import asyncio

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import poll, secrets
from edgekeeper.watch.seams import Inside


class HttpCure:
    """One request without a body, within a deadline in seconds, from within a network namespace if ``inside`` gives one. A ``seams.Cure``.

    The bearer token is read from its file at each request. Neither it nor the server's answer is told: the answer might repeat it.
    """

    def __init__(self, url: str, *, method: str = "POST", inside: Inside | None = None, token_file: str | None = None, deadline_s: float = 60.0) -> None:
        self.name = f"{method} {url.partition('?')[0]}"
        self._url = url
        self._method = method
        self._inside = inside
        self._token_file = token_file
        self._deadline_s = deadline_s

    async def ready(self, *, ours: bool, since: float) -> str | None:  # noqa: ARG002 - as every cure is asked
        """Nothing stands in its way that could be seen before."""
        return None

    async def apply(self) -> str | None:
        """Send it; None when the answer is 2xx, else the sentence that says what came instead."""
        try:
            async with asyncio.timeout(self._deadline_s):
                inside = await self._inside() if self._inside is not None else None
                headers = {"Authorization": f"Bearer {secrets.read(self._token_file)}"} if self._token_file is not None else {}
                answer = await poll.once(self._url, method=self._method, deadline_s=self._deadline_s, headers=headers, inside=inside)
        except TimeoutError:
            return f"{self.name} was not answered within {self._deadline_s:g} s"
        except EdgekeeperError as err:
            return str(err)
        return None if 200 <= answer.status < 300 else f"{self.name} was answered with HTTP {answer.status}"
