"""Delete pods whose controller makes new ones, or roll out a workload again; and see that what comes is ready.

Imported only where a watch has such a cure: it needs the extra ``kube``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.watch import KubernetesCure
from edgekeeper.errors import EdgekeeperError
from edgekeeper.kube import objects
from edgekeeper.kube.client import Api, connect
from edgekeeper.kube.errors import Absent, Conflict
from edgekeeper.ports import Clock
from edgekeeper.watch.pods import Pod, Workload, chosen, forbidden, missing, started_since, unfinished

RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""What `kubectl rollout restart` writes into the template: a changed template is rolled out."""
_LOOK_S = 0.5
GRACE_S = 0.5
"""A question that was begun within the deadline may be answered so much later; what it says is better than that there was no answer."""
_KINDS: Mapping[str, type[Any]] = {"deployment": objects.Deployment, "statefulset": objects.StatefulSet, "daemonset": objects.DaemonSet}


class PodsCure:
    """Delete one pod by name, or those that have labels. A ``seams.Cure``.

    Done when as many new ones of the same controllers are ready, within the deadline in seconds. A pod without a controller is never
    deleted, and each only as the very pod that was looked at (by its uid).
    """

    def __init__(self, written: KubernetesCure, kubernetes: Kubernetes, node: str, clock: Clock, *, grace_s: float | None, deadline_s: float) -> None:
        self._namespace, _, self._said = (written.pod or written.label or "").partition("/")
        self._by_name = written.pod is not None
        self._which = written.which
        self._kubernetes = kubernetes
        self._node = node
        self._clock = clock
        self._grace_s = None if grace_s is None else round(grace_s)
        self._deadline_s = deadline_s
        self.name = f"kubernetes delete pod {self._namespace}/{self._said}"

    async def ready(self, *, ours: bool, since: float) -> str | None:
        """Whether it is clear which pods are meant, each has a controller, and none was started since."""
        return await _told(self._kubernetes, lambda api: self._ready(api, ours=ours, since=since))

    async def apply(self) -> str | None:
        """Delete them; None when others are ready in their place, else the sentence that says what is missing."""
        return await _told(self._kubernetes, self._apply, self._deadline_s)

    async def rehearse(self) -> str | None:
        """Why they could not be deleted now, rights too; nothing is."""
        return await _told(self._kubernetes, self._rehearse)

    async def _rehearse(self, api: Api) -> str | None:
        pods = self._meant(await self._pods(api))
        if isinstance(pods, str):
            return pods
        for pod in pods:
            await api.delete(objects.Pod, pod.name, namespace=self._namespace, uid=pod.uid, dry_run=True)
        return None

    async def _ready(self, api: Api, *, ours: bool, since: float) -> str | None:
        pods = self._meant(await self._pods(api))
        if isinstance(pods, str):
            return pods
        return None if ours else started_since(pods, since)

    async def _apply(self, api: Api) -> str | None:
        end = self._clock.monotonic() + self._deadline_s
        before = await self._pods(api)
        pods = self._meant(before)
        if isinstance(pods, str):
            return pods
        for pod in pods:
            try:
                await api.delete(objects.Pod, pod.name, namespace=self._namespace, uid=pod.uid, grace_s=self._grace_s)
            except (Absent, Conflict):
                continue  # it is gone, or another one already
        names = ", ".join(pod.name for pod in pods[:3])
        why = await _until(lambda: self._missing(api, pods, before), self._clock, end)
        return f"pod {names} was deleted, but within {self._deadline_s:g} s {why}" if why is not None else None

    async def _missing(self, api: Api, deleted: tuple[Pod, ...], before: list[Pod]) -> str | None:
        return missing(deleted, {pod.uid for pod in before}, await self._pods(api))

    def _meant(self, pods: list[Pod]) -> tuple[Pod, ...] | str:
        named = [pod for pod in pods if pod.name == self._said] if self._by_name else pods
        return chosen(f"{self._namespace}/{self._said}", named, self._which, self._node)

    async def _pods(self, api: Api) -> list[Pod]:
        """Those with the labels; of a pod that is named all of its namespace, because the one in its place may have another name."""
        labels = None if self._by_name else self._said
        return [_pod(one) for one in (await api.list(objects.Pod, namespace=self._namespace, labels=labels)).items]


class RolloutCure:
    """Restart a Deployment, StatefulSet or DaemonSet as ``kubectl rollout restart`` does, within a deadline in seconds. A ``seams.Cure``.

    Done when all of its pods are new and ready. What takes longer goes on in the cluster all the same.
    """

    def __init__(self, rollout: str, kubernetes: Kubernetes, clock: Clock, *, deadline_s: float) -> None:
        self._namespace, kind, self._object = rollout.split("/")
        self._kind = _KINDS[kind]
        self._kubernetes = kubernetes
        self._clock = clock
        self._deadline_s = deadline_s
        self._shown = f"{kind} {self._namespace}/{self._object}"
        self.name = f"kubernetes rollout restart {self._shown}"

    async def ready(self, *, ours: bool, since: float) -> str | None:
        """Whether it is there, runs, and a rollout would restart it."""
        return await _told(self._kubernetes, lambda api: self._ready(api, ours=ours, since=since))

    async def apply(self) -> str | None:
        """Restart it; None when all of its pods are new and ready, else the sentence that says what is missing."""
        return await _told(self._kubernetes, self._apply, self._deadline_s)

    async def _ready(self, api: Api, *, ours: bool, since: float) -> str | None:
        found = await api.get(self._kind, self._object, namespace=self._namespace)
        return f"there is no {self._shown}" if found is None else forbidden(self._shown, _workload(found), since, ours=ours)

    async def rehearse(self) -> str | None:
        """Why it could not be restarted now, rights too; nothing is."""
        return await _told(self._kubernetes, self._rehearse)

    async def _rehearse(self, api: Api) -> str | None:
        why = await self._ready(api, ours=True, since=0.0)
        if why is None:
            await self._patch(api, dry_run=True)
        return why

    async def _patch(self, api: Api, *, dry_run: bool = False) -> None:
        stamp = datetime.fromtimestamp(self._clock.wall(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        body = {"spec": {"template": {"metadata": {"annotations": {RESTARTED: stamp}}}}}
        await api.patch(self._kind, self._object, body, namespace=self._namespace, how="strategic", dry_run=dry_run)

    async def _apply(self, api: Api) -> str | None:
        end = self._clock.monotonic() + self._deadline_s
        why = await self._ready(api, ours=True, since=0.0)  # finds the server that answers, too: a change is sent to one only
        if why is not None:
            return why
        await self._patch(api)
        why = await _until(lambda: self._unfinished(api), self._clock, end)
        return f"{self._shown} was restarted, but within {self._deadline_s:g} s {why}; the rollout goes on" if why is not None else None

    async def _unfinished(self, api: Api) -> str | None:
        found = await api.get(self._kind, self._object, namespace=self._namespace)
        return f"there is no {self._shown} any more" if found is None else unfinished(_workload(found))


async def _told(kubernetes: Kubernetes, work: Callable[[Api], Awaitable[str | None]], deadline_s: float | None = None) -> str | None:
    """The work over a connection of its own; what goes wrong is the sentence. A server that hangs in the middle does not stretch the deadline."""
    try:
        async with asyncio.timeout(deadline_s + GRACE_S if deadline_s is not None else None), connect(kubernetes) as api:
            return await work(api)
    except TimeoutError:
        return f"the cluster did not answer within {deadline_s:g} s; what was asked of it may still happen"
    except EdgekeeperError as err:
        return str(err)


async def _until(question: Callable[[], Awaitable[str | None]], clock: Clock, end: float) -> str | None:
    """Ask until nothing is missing; after ``end`` (monotonic) the last that was. A server that does not answer is asked again."""
    while True:
        try:
            why = await question()
        except EdgekeeperError as err:
            why = str(err)
        if why is None or clock.monotonic() >= end:
            return why
        await asyncio.sleep(_LOOK_S)


def _pod(obj: objects.Pod) -> Pod:
    of, spec, status = objects.meta(obj), obj.spec, obj.status
    owner = next((ref for ref in of.ownerReferences or () if ref.controller), None)
    starts = [
        c.state.running.startedAt
        for c in (status.containerStatuses if status is not None else None) or ()
        if c.state is not None and c.state.running is not None
    ]
    stamps = [float(at.timestamp()) for at in starts if at is not None]
    return Pod(
        name=of.name or "",
        uid=of.uid or "",
        owner=(owner.uid or "") if owner is not None and owner.kind != "Node" else "",
        node=(spec.nodeName or "") if spec is not None else "",
        phase=(status.phase or "Unknown") if status is not None else "Unknown",
        ready=any(c.type == "Ready" and c.status == "True" for c in (status.conditions if status is not None else None) or ()),
        leaving=of.deletionTimestamp is not None,
        started=max(stamps, default=objects.created(of) or None),
        static="kubernetes.io/config.mirror" in (of.annotations or {}) or (owner is not None and owner.kind == "Node"),
    )


def _workload(obj: Any) -> Workload:
    """Any of the three kinds: a DaemonSet counts nodes where the others count replicas."""
    spec, status = obj.spec, obj.status
    template = objects.meta(spec.template) if spec is not None else objects.ObjectMeta()
    strategy = getattr(spec, "updateStrategy", None)
    seen = (getattr(status, "observedGeneration", None) or 0) >= (objects.meta(obj).generation or 0)
    restarted = _unix((template.annotations or {}).get(RESTARTED))
    said: dict[str, Any] = {"seen": seen, "restarted": restarted, "on_delete": strategy is not None and strategy.type == "OnDelete"}
    if isinstance(obj, objects.DaemonSet):
        wanted, updated = _number(status, "desiredNumberScheduled"), _number(status, "updatedNumberScheduled")
        return Workload(wanted, _number(status, "currentNumberScheduled"), updated, _number(status, "numberAvailable"), **said)
    wanted = 1 if spec is None or spec.replicas is None else spec.replicas
    total, updated = _number(status, "replicas"), _number(status, "updatedReplicas")
    ready = _number(status, "availableReplicas" if isinstance(obj, objects.Deployment) else "readyReplicas")
    return Workload(wanted, total, updated, ready, paused=bool(getattr(spec, "paused", False)), **said)


def _number(status: Any, name: str) -> int:
    return int(getattr(status, name, None) or 0)


def _unix(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None
