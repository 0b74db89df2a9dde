"""Which pods a cure deletes, whether it may, and whether others have come in their place; whether a rollout is done. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from edgekeeper.model.text import printable

SINCE_MOST_S = 120.0
"""A start that lies further ahead of the evidence than this is no start since: one of the clocks is wrong."""

_OVER = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. ``owner`` is the uid of the controller that makes another one, "" when nothing does; ``started`` is Unix time.

    ``static``: it is a kubelet's file, and deleting it in the API restarts nothing.
    """

    name: str
    uid: str
    owner: str = ""
    node: str = ""
    phase: str = "Running"
    ready: bool = True
    leaving: bool = False
    started: float | None = None
    static: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment, StatefulSet or DaemonSet. ``wanted`` pods, of which ``updated`` are of the newest template, ``ready`` of those, ``total`` there at all.

    ``seen``: its controller has seen the newest template. ``restarted``: Unix time of the last restart by rollout.
    """

    wanted: int
    total: int = 0
    updated: int = 0
    ready: int = 0
    seen: bool = True
    paused: bool = False
    on_delete: bool = False
    restarted: float | None = None


def chosen(what: str, pods: Iterable[Pod], which: str, node: str) -> tuple[Pod, ...] | str:
    """The pods that are meant, or why it is not clear or must not be. What has ended, or is about to, does not count."""
    found = sorted((pod for pod in pods if pod.phase not in _OVER), key=lambda pod: pod.name)
    staying = [pod for pod in found if not pod.leaving]
    if which == "here":
        staying = [pod for pod in staying if pod.node == node]
    where = f" on the cluster's node {node}" if which == "here" else ""
    if not staying:
        leaving = f"; {printable(found[0].name, 100)} is being deleted already" if found and which != "here" else ""
        return f"there is no pod {what}{where}{leaving}"
    if which == "one" and len(staying) > 1:
        names = ", ".join(printable(pod.name, 100) for pod in staying[:3])
        return f"there are {len(staying)} pods {what} ({names}{', ...' if len(staying) > 3 else ''}); say which: here or which: all, or name one"
    bad = next((pod for pod in staying if pod.static or not pod.owner), None)
    if bad is not None:
        why = "is a static pod of its node; deleting it restarts nothing" if bad.static else "has no controller; nothing would make another one"
        return f"pod {printable(bad.name, 100)} {why}"
    return tuple(staying)


def started_since(pods: Sequence[Pod], since: float) -> str | None:
    """The sentence about a pod that is younger than the evidence against it (both Unix time): it has to fail anew."""
    young = next((pod for pod in pods if pod.started is not None and since < pod.started < since + SINCE_MOST_S), None)
    return f"pod {printable(young.name, 100)} was started after the probe had failed; it has to fail again" if young is not None else None


def missing(deleted: Sequence[Pod], before: Collection[str], now: Iterable[Pod]) -> str | None:
    """What is still missing after these pods were deleted; None when as many others of the same controllers are ready. ``before``: uids of then."""
    fresh = [pod for pod in now if pod.uid not in before]
    for owner in {pod.owner for pod in deleted}:
        wanted = sum(pod.owner == owner for pod in deleted)
        come = [pod for pod in fresh if pod.owner == owner]
        ready = sum(pod.ready and not pod.leaving for pod in come)
        if ready < wanted:
            waiting = next((pod for pod in come if not pod.ready), None)
            told = f"pod {printable(waiting.name, 100)} is {printable(waiting.phase, 30)} and not ready" if waiting is not None else "no other has come"
            return f"{ready} of {wanted} new pods are ready; {told}"
    return None


def forbidden(name: str, workload: Workload, since: float, *, ours: bool) -> str | None:
    """Why a workload must not be rolled out again now; None when it may. ``since``: Unix time of the evidence against it."""
    if workload.wanted == 0 and not ours:
        return f"{name} is scaled to 0: somebody stopped it; that is no wedge"
    if workload.paused:
        return f"the rollout of {name} is paused; resume it first (kubectl rollout resume)"
    if workload.on_delete:
        return f"{name} has the update strategy OnDelete: a rollout restarts nothing; delete its pods by label instead"
    if workload.restarted is not None and since < workload.restarted < since + SINCE_MOST_S and not ours:
        return f"{name} was restarted after the probe had failed; it has to fail again"
    return None


def unfinished(workload: Workload) -> str | None:
    """What a rollout still waits for; None when all of its pods are new and ready."""
    if not workload.seen:
        return "its controller has not seen it yet"
    if workload.updated < workload.wanted:
        return f"{workload.updated} of {workload.wanted} pods are new"
    if workload.ready < workload.wanted:
        return f"{workload.ready} of {workload.wanted} new pods are ready"
    if workload.total > workload.updated:
        return f"{workload.total - workload.updated} old pods are still there"
    return None
