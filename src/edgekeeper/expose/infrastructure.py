"""What the targets stand on is there, and stays there: looked at, made and repaired, with as few calls as that takes.

The ids are kept in memory and in ``state_dir``, so that most passes ask nothing. Every five minutes one call tells whether the network
and its resources are still there (somebody who deletes a network leaves every service with a dead target, and the server does not
object); every hour, or on a doubt, all of it is looked at.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from edgekeeper.config.expose import NetBird as Wanted
from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose.ensure import EVERYBODY, Decision, Known, Seen, Step, Want, anchored, choose, decide, fitting
from edgekeeper.expose.kinds import Footing
from edgekeeper.expose.netbird import NetBird
from edgekeeper.expose.netbird_say import ApiError, Resource
from edgekeeper.host.files import read_text, write_text
from edgekeeper.ports import Clock

FILE: Final = "expose-mesh.json"
GLANCE_S: Final = 300.0
LOOK_S: Final = 3600.0
_SOON_S: Final = 60.0
_LATE_S: Final = 600.0
_ROUNDS: Final = 4
"""A network, then its resources and router, then the policy; and one more that finds nothing to do."""


class Infrastructure:
    """Ensures the network, the resources and the router of one edgekeeper; one pass at a time.

    ``acts`` are the sentences of what the last ``ensure`` wrote or could not write; ``remarks`` what a person should know.
    """

    def __init__(self, mesh: NetBird, wanted: Wanted, *, owner: str, cluster: str, clock: Clock, state_dir: str | None = None) -> None:
        self.acts: tuple[str, ...] = ()
        self.remarks: tuple[str, ...] = ()
        self._mesh = mesh
        self._wanted = wanted
        self._owner = f"{owner}/{cluster}"
        self._clock = clock
        self._file = Path(state_dir) / FILE if state_dir is not None else None
        self._network = ""
        self._used: dict[str, Resource] = {}
        self._lacking: dict[str, str] = {}
        self._alive: frozenset[str] = frozenset()
        self._glance_at = float("-inf")
        self._look_at = float("-inf")
        self._looked = 0.0
        self._pause_s = _SOON_S
        self._pause_until = float("-inf")
        self._doubt = ""
        self._recall()

    async def ensure(self, addresses: Iterable[str], service_cidr: str | None, *, ports: Iterable[int] = (443,)) -> Footing:
        """An anchor for each address, made where it is missing. ApiError when nothing is known and the mesh cannot be looked at."""
        want = self._want(addresses, service_cidr, ports)
        now = self._clock.monotonic()
        self.acts = ()
        trouble = []
        try:
            if self._must_look(want, now) or (now >= self._glance_at and not await self._still_there(now)):
                await self._look(want, now)
        except EdgekeeperError as err:
            if not fitting(want, self._used):
                raise
            trouble.append(f"the mesh could not be looked at again: {err}")
            self._glance_at = now + _SOON_S
        return self._footing(want, fitting(want, self._used), self._lacking, self._alive, *trouble)

    async def look(self, addresses: Iterable[str], service_cidr: str | None, *, ports: Iterable[int] = (443,)) -> tuple[Footing, tuple[str, ...]]:
        """What is there, and what ``ensure`` would write first (the rest follows from that); nothing is written."""
        want = self._want(addresses, service_cidr, ports)
        seen, why, more, alive = await self._seen(want)
        decision = self._decide(seen, want, why)
        self.remarks = (*more, *decision.remarks)
        return self._footing(want, decision.used, decision.lacking, alive), tuple(step.text for step in decision.steps)

    def doubt(self, why: str) -> None:
        """Something does not fit (a target is refused, a service leads elsewhere): look at all of it with the next ``ensure``, but not again and again."""
        self._doubt = why

    def _want(self, addresses: Iterable[str], service_cidr: str | None, ports: Iterable[int]) -> Want:
        it = self._wanted
        return Want(
            self._owner,
            it.network,
            it.resource or f"{it.network}-targets",
            service_cidr,
            tuple(sorted(set(addresses))),
            it.router_group,
            it.router_metric,
            it.router_masquerade,
            it.policy,
            tuple(sorted(set(ports))),
        )

    @staticmethod
    def _footing(want: Want, used: Mapping[str, Resource], lacking: Mapping[str, str], alive: frozenset[str], *trouble: str) -> Footing:
        anchors, missing = anchored(want, used, lacking)
        return Footing(anchors, alive | {one.id for one in used.values()}, "; ".join(dict.fromkeys([*missing.values(), *trouble])))

    def _must_look(self, want: Want, now: float) -> bool:
        untried = want.needs().keys() - fitting(want, self._used).keys() - self._lacking.keys()
        return now >= self._look_at or bool(untried) or (self._provoked() and now >= self._pause_until)

    def _provoked(self) -> bool:
        return bool(self._doubt or self._lacking or self.remarks)

    async def _still_there(self, now: float) -> bool:
        """One call: the network and the resources in use are there."""
        networks = await self._mesh.networks()
        self._alive = frozenset(rid for one in networks for rid in one.resources)
        own = next((one for one in networks if one.id == self._network), None)
        fine = own is not None and {one.id for one in self._used.values()} <= self._alive
        if fine:
            self._glance_at = now + GLANCE_S
            self._remember()
        return fine

    async def _look(self, want: Want, now: float) -> None:
        """Look at all of it, and do what is missing, step by step; what cannot be done is in ``acts``, and its addresses stay without an anchor."""
        before = self._known()
        provoked = self._provoked()
        seen, why, more, alive = await self._seen(want)
        failed: dict[str, str] = {}
        decision = self._decide(seen, want, why)
        acts: list[str] = []
        for _ in range(_ROUNDS):
            todo = [step for step in decision.steps if step.text not in failed]
            if not todo:
                break
            for step in todo:
                try:
                    seen = await self._do(step, seen)
                    acts.append(f"{step.text}: done")
                except ApiError as err:
                    failed[step.text] = str(err)
                    acts.append(f"{step.text}: {err}")
            if seen.network is not None:
                self._network = seen.network.id
            decision = self._decide(seen, want, why)
        self.acts = tuple(acts)
        self.remarks = (*more, *decision.remarks, *failed.values())
        self._used = dict(decision.used)
        self._lacking = {name: failed.get(why, why) for name, why in decision.lacking.items()}
        self._network = seen.network.id if seen.network is not None else ""
        self._alive = alive | {one.id for one in seen.resources}
        self._pause_s = min(_LATE_S, self._pause_s * 2) if provoked and before == self._known() else _SOON_S
        self._pause_until = now + self._pause_s
        self._glance_at, self._look_at, self._doubt = now + GLANCE_S, now + LOOK_S, ""
        self._looked = self._clock.wall()
        self._remember()

    def _decide(self, seen: Seen, want: Want, why: str) -> Decision:
        if why:
            return Decision((), {}, dict.fromkeys(want.needs(), why), (why,))
        return decide(seen, want, self._known())

    async def _seen(self, want: Want) -> tuple[Seen, str, tuple[str, ...], frozenset[str]]:
        """All that a decision needs; why there can be none; what to remark of the choice; and the ids of all resources of the account."""
        mesh = self._mesh
        networks = await mesh.networks()
        alive = frozenset(rid for one in networks for rid in one.resources)
        network, why, remarks = choose(networks, want, self._known())
        if why:
            return Seen(None), why, remarks, alive
        resources = await mesh.resources(network.id) if network is not None else ()
        routers = await mesh.routers(network.id) if network is not None else ()
        group = await mesh.group(want.router_group) if want.router_group is not None else None
        everybody = await mesh.group(EVERYBODY) if want.policy else None
        policies = await mesh.policies() if want.policy else ()
        return Seen(network, resources, routers, group, everybody, policies), "", remarks, alive

    async def _do(self, step: Step, seen: Seen) -> Seen:
        """One write, and what is there after it."""
        mesh = self._mesh
        if step.act == "make network":
            return replace(seen, network=await mesh.create_network(step.body))
        if step.act == "make policy":
            return replace(seen, policies=(*seen.policies, await mesh.create_policy(step.body)))
        net = seen.network.id if seen.network is not None else ""
        match step.act:
            case "make resource":
                return replace(seen, resources=(*seen.resources, await mesh.create_resource(net, step.body)))
            case "change resource":
                new = await mesh.replace_resource(net, step.id, step.body)
                return replace(seen, resources=tuple(new if one.id == step.id else one for one in seen.resources))
            case "make router":
                return replace(seen, routers=(*seen.routers, await mesh.create_router(net, step.body)))
            case "change router":
                changed = await mesh.replace_router(net, step.id, step.body)
                return replace(seen, routers=tuple(changed if one.id == step.id else one for one in seen.routers))

    def _known(self) -> Known:
        return Known(self._network, {name: one.id for name, one in self._used.items()})

    # the file

    def _recall(self) -> None:
        """What an earlier process has chosen; a file that cannot be read counts as none: everything in it can be looked up again."""
        if self._file is None:
            return
        with contextlib.suppress(EdgekeeperError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            kept: dict[str, Any] = json.loads(read_text(self._file))
            if kept["schema"] != 1 or kept["for"] != self._identity():
                return
            used = {str(name): Resource(str(one["id"]), str(name), str(one["address"]), str(one["type"])) for name, one in kept["resources"].items()}
            self._looked = float(kept["looked"])
            age, since = self._clock.wall() - float(kept["at"]), self._clock.wall() - self._looked
            self._network, self._used, self._alive = str(kept["network"]), used, frozenset(map(str, kept["alive"]))
            if 0 <= age <= since < LOOK_S and used and not kept["troubled"]:
                now = self._clock.monotonic()
                self._glance_at, self._look_at = now + GLANCE_S - age, now + LOOK_S - since

    def _remember(self) -> None:
        if self._file is None:
            return
        kept = {
            "schema": 1,
            "for": self._identity(),
            "at": self._clock.wall(),
            "looked": self._looked,
            "network": self._network,
            "resources": {name: {"id": one.id, "address": one.address, "type": one.type} for name, one in self._used.items()},
            "alive": sorted(self._alive),
            "troubled": bool(self.remarks or self._lacking),
        }
        with contextlib.suppress(EdgekeeperError):  # then the next process looks everything up
            write_text(self._file, json.dumps(kept), sync=False)

    def _identity(self) -> list[str | int | bool | None]:
        """What the file is for: another server, owner or name, and what it holds means nothing."""
        it = self._wanted
        return [self._mesh.url, self._owner, it.network, it.resource, it.router_group, it.router_metric, it.router_masquerade, it.policy]
