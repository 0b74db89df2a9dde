"""Making a node empty by the API's own means: no new pods come to it, and those that are there are asked to go as their budgets allow."""

from __future__ import annotations

from typing import Final

from edgekeeper.errors import RefusedError, StepFailedError
from edgekeeper.kube.client import Api
from edgekeeper.kube.errors import Absent, Conflict
from edgekeeper.kube.objects import DeleteOptions, Node, ObjectMeta, Pod, PodEviction, Preconditions, meta
from edgekeeper.model.text import printable

PREFIX: Final = "edgekeeper.io"
_TRIES: Final = 10
"""A node's object is written by its kubelet and the controllers too; one of them may come between our look and our write."""


async def cordon(api: Api, node: str, owner: str, *, prefix: str = PREFIX, dry_run: bool = False) -> bool:
    """Let no new pod onto the node, and write on it who wanted that. False: somebody else had cordoned it before; it is left as it is.

    Absent: there is no such node.
    """
    for _ in range(_TRIES):
        unschedulable, by, version = await _look(api, node, prefix)
        if unschedulable:
            return by == owner
        try:
            await _write(api, node, version, by=owner, prefix=prefix, dry_run=dry_run)
        except Conflict:
            continue
        return True
    raise _restless(node)


async def uncordon(api: Api, node: str, owner: str, *, prefix: str = PREFIX, dry_run: bool = False) -> bool:
    """Let pods onto the node again, if ``owner`` has cordoned it. False: it was not cordoned. RefusedError: somebody else did it. Absent: no such node."""
    for _ in range(_TRIES):
        unschedulable, by, version = await _look(api, node, prefix)
        if unschedulable and by != owner:
            msg = f"node {node} was cordoned by {printable(by, 100) or 'somebody who wrote no name'}, not by {owner}; it stays cordoned"
            raise RefusedError(msg)
        if not unschedulable and by != owner:
            return False
        try:
            await _write(api, node, version, by=None, prefix=prefix, dry_run=dry_run)
        except Conflict:
            continue
        return unschedulable
    raise _restless(node)


async def evict(api: Api, namespace: str, pod: str, *, uid: str | None = None, grace_s: int | None = None, dry_run: bool = False) -> bool:
    """Ask that a pod goes, as its PodDisruptionBudget allows; True: it is going. False: it (the very one, with ``uid``) is gone already.

    Blocked: not now; the message has the budget's own words, and trying again later is all there is to do. ``grace_s`` overrides how long
    the pod has to end, in seconds. A dry run asks the budget and takes nothing away.
    """
    if uid is not None:  # the server takes one from the budget before it compares the uid, and gives it back after two minutes only
        there = await api.get(Pod, pod, namespace=namespace)
        if there is None or meta(there).uid != uid:
            return False
    options = DeleteOptions(gracePeriodSeconds=grace_s, preconditions=Preconditions(uid=uid) if uid else None)
    body = PodEviction(metadata=ObjectMeta(name=pod, namespace=namespace), deleteOptions=options)
    try:
        await api.create(body, dry_run=dry_run)
    except Absent:
        return False
    except Conflict:
        if uid is None:
            raise
        return False
    return True


async def _look(api: Api, node: str, prefix: str) -> tuple[bool, str, str]:
    """Whether it is cordoned, who says to have done it ("" nobody), and the version that says so."""
    found = await api.get(Node, node)
    if found is None:
        msg = f"the cluster has no node {node}"
        raise Absent(msg)
    of = meta(found)
    by = (of.annotations or {}).get(_mark(prefix), "")
    return bool(found.spec and found.spec.unschedulable), by, of.resourceVersion or ""


async def _write(api: Api, node: str, version: str, *, by: str | None, prefix: str, dry_run: bool) -> None:
    body = {"metadata": {"resourceVersion": version, "annotations": {_mark(prefix): by}}, "spec": {"unschedulable": True if by is not None else None}}
    await api.patch(Node, node, body, dry_run=dry_run)


def _mark(prefix: str) -> str:
    return f"{prefix}/cordoned-by"


def _restless(node: str) -> StepFailedError:
    return StepFailedError(f"node {node} was written by others {_TRIES} times while it was to be changed; try again")
