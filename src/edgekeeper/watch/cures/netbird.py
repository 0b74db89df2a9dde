"""Restart only the embedded clients of NetBird's proxy, by its debug endpoint: its listeners and established connections of others stay.

Off unless it is asked for: the calls are those of the proxy's own command line (read in its source, v0.77.1), but whether a wedge is
cured by them was not tried against a live NetBird. The endpoint must be turned on there (NB_PROXY_DEBUG_ENDPOINT), on localhost.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from edgekeeper.errors import EdgekeeperError, StepFailedError
from edgekeeper.host import poll
from edgekeeper.model.text import printable
from edgekeeper.watch.seams import Inside

_MOST = 20
"""Clients of one proxy; it has one for each account."""


class ClientsCure:
    """Stop and start each embedded client; every call has the deadline in seconds (the proxy itself takes up to 30). A ``seams.Cure``."""

    def __init__(self, url: str, *, inside: Inside | None = None, deadline_s: float = 35.0) -> None:
        self.name = f"restart of NetBird's clients at {url}"
        self._url = url.rstrip("/")
        self._inside = inside
        self._deadline_s = deadline_s

    async def ready(self, *, ours: bool, since: float) -> str | None:  # noqa: ARG002 - as every cure is asked
        """Nothing stands in its way that could be seen before."""
        return None

    async def apply(self) -> str | None:
        """Do it; None when every client was started again, else the sentence that says which was not. One that cannot be stopped is started all the same."""
        try:
            inside = await self._inside() if self._inside is not None else None
            accounts = _accounts(await self._get("?format=json", inside))
        except EdgekeeperError as err:
            return str(err)
        failed: list[str] = []
        for account in accounts:
            try:
                await self._act(account, "stop", inside)
            except EdgekeeperError as err:
                failed.append(str(err))
            try:
                await self._act(account, "start", inside)
            except EdgekeeperError as err:
                failed.append(str(err))
        return "; ".join(failed[:3]) or None

    async def _act(self, account: str, verb: str, inside: str | None) -> None:
        found = await self._get(f"/{quote(account, safe='')}/{verb}?format=json", inside)
        if not isinstance(found, dict) or found.get("success") is not True:  # it says HTTP 200 of a failure too
            why = found.get("error") if isinstance(found, dict) else None
            msg = f"client {printable(account, 60)} could not be told to {verb}: {printable(str(why or 'no reason given'), 200)}"
            raise StepFailedError(msg)

    async def _get(self, path: str, inside: str | None) -> Any:
        url = f"{self._url}/debug/clients{path}"
        answer = await poll.once(url, deadline_s=self._deadline_s, inside=inside)
        try:
            found = json.loads(answer.text) if answer.status == 200 else None
        except (ValueError, RecursionError):
            found = None
        if found is None:
            msg = f"{printable(url, 200)} did not answer with JSON (HTTP {answer.status}); is the debug endpoint on?"
            raise StepFailedError(msg)
        return found


def _accounts(found: Any) -> list[str]:
    """The accounts that have a client; StepFailedError when there is none, or the answer is not the list that is known."""
    try:
        accounts = [str(row["account_id"]) for row in found["clients"] if row.get("has_client", True)][:_MOST]
    except (KeyError, TypeError, AttributeError):
        accounts = []
    if not accounts:
        msg = "the debug endpoint names no client that could be restarted"
        raise StepFailedError(msg)
    return accounts
