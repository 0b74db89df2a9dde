"""A group's Lease in a cluster: a member holds it from the wish to cure until the proof, or as long as others would wait for that.

Imported only where a group names a Lease: it needs the extra ``kube``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.errors import EdgekeeperError, LockHeldError
from edgekeeper.kube.client import Api, connect
from edgekeeper.kube.errors import Conflict
from edgekeeper.kube.lease import Election, Term
from edgekeeper.kube.objects import Lease, LeaseSpec, ObjectMeta
from edgekeeper.ports import Clock

TRY_S = 2.0
"""A cluster that does not answer within this time is away, and the members' order decides: a cure must not wait for an API that may be its patient."""
AGAIN_S = 5.0
_RENEWED, _RETRIED = 2 / 3, 1 / 15
"""Of the Lease's duration: how long a member acts on a renewal, and how often it renews."""


class GroupLease:
    """This node's part in a group's Lease. A ``siblings.Lease``.

    ``standing`` is what the status says: ``held``; ``waits``: another member has it; ``asking``; ``away``: the cluster cannot be asked, so
    that the order decides; "" while nothing is wanted. The Lease lasts ``wait_s``, so that the death of its holder holds the others up no longer than a cure would.
    """

    def __init__(self, name: str, kubernetes: Kubernetes, node: str, clock: Clock, wait_s: float, connected: Callable[[Kubernetes], Api] = connect) -> None:
        self.name = f"{kubernetes.namespace}/{name}"
        self._lease, self._kubernetes, self._node, self._clock, self._wait_s = name, kubernetes, node, clock, wait_s
        self._connected = connected
        self._standing = "away"
        self.why = "the cluster has not been asked yet"
        self._release: asyncio.TimerHandle | None = None
        self._term: Term | None = None
        self._wanted = asyncio.Event()
        self._rest = asyncio.Event()
        self._news: Callable[[], None] = lambda: None

    @property
    def standing(self) -> str:
        """What the status says; a term that ran out while this process stood still is not held."""
        if not self._wanted.is_set():
            return ""
        if self._standing == "held" and (self._term is None or not self._term.left_s()):
            return "asking"
        return self._standing or "asking"

    def tell(self, news: Callable[[], None]) -> None:
        """Call this whenever it stands otherwise."""
        self._news = news

    def want(self) -> None:
        """Campaign for it, until ``rest``."""
        self._stay()
        self._rest.clear()
        self._wanted.set()

    def rest(self) -> None:
        """Nothing is wanted any more, or the others have waited long enough: give it back."""
        self._stay()
        self._wanted.clear()
        self._rest.set()

    def cures(self) -> None:
        """A cure begins: from now on the others wait for its proof, and no longer than so."""
        self._stay()
        self._release = asyncio.get_running_loop().call_later(self._wait_s, self.rest)

    def _stay(self) -> None:
        if self._release is not None:
            self._release.cancel()
            self._release = None

    async def follow(self) -> None:
        """Campaign whenever it is wanted, for ever."""
        try:
            async with self._connected(self._kubernetes) as api:
                making = asyncio.create_task(self._made(api))
                try:
                    await self._campaigns(api)
                finally:
                    making.cancel()
        except EdgekeeperError as err:
            self._stands("away", str(err))
            raise
        finally:
            self._standing = "away"

    async def _campaigns(self, api: Api) -> None:
        lease_s, namespace = self._wait_s, self._kubernetes.namespace
        times = {"lease_s": lease_s, "renew_s": lease_s * _RENEWED, "retry_s": lease_s * _RETRIED}
        election = Election(api, self._lease, namespace, self._node, self._clock, **times)
        self._stands("", "")
        while True:
            await self._wanted.wait()
            await self._campaign(election)

    async def _campaign(self, election: Election) -> None:
        try:
            await election.lead(self._hold, wait_s=TRY_S)
        except LockHeldError as err:
            holder = election.holder.rpartition("_")[0]
            self._stands("waits", f"{holder} holds the Lease {self.name}" if holder else str(err))
        except EdgekeeperError as err:
            self._stands("away", f"the Lease {self.name} cannot be asked for, so the order of the members decides: {err}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_S):
                    await self._rest.wait()
        if self._standing != "away" and not self._wanted.is_set():
            self._stands("", "")

    async def _hold(self, term: Term) -> None:
        self._term = term
        self._stands("held", f"this member holds the Lease {self.name}")
        try:
            await self._rest.wait()
        finally:
            self._term = None
            self._stands("", "")

    async def _made(self, api: Api) -> None:
        """Make the Lease where it is not: a candidate that finds none waits, in case somebody has just deleted it under its holder, and a cure should not."""
        with contextlib.suppress(EdgekeeperError):
            if await api.get(Lease, self._lease, namespace=self._kubernetes.namespace) is None:
                await asyncio.sleep(self._wait_s)
                with contextlib.suppress(Conflict):
                    made = Lease(metadata=ObjectMeta(name=self._lease, namespace=self._kubernetes.namespace), spec=LeaseSpec())
                    await api.create(made)

    def _stands(self, standing: str, why: str) -> None:
        if (standing, why) != (self._standing, self.why):
            self._standing, self.why = standing, why
            self._news()
