"""The watch section of a config, judged: are its targets and patterns usable, would its probe see a wedge, could it cure at all.

There is no engine to ask; nothing is asked of the network or of Docker, except of a cluster whether it would allow the cures in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.config.watch import CureStep, Watch
from edgekeeper.errors import EdgekeeperError, MissingError, UsageError
from edgekeeper.host.addresses import held
from edgekeeper.host.clock import SystemClock
from edgekeeper.model.verdict import EngineVerdict
from edgekeeper.probe.target import parse
from edgekeeper.watch import build
from edgekeeper.watch.advice import advice
from edgekeeper.watch.netbird import LEAK
from edgekeeper.watch.parts import Parts
from edgekeeper.watch.presets import merged
from edgekeeper.watch.seams import Rehearsed


async def verdict(root: Root, node: str) -> EngineVerdict:
    """Make every watch once, and throw it away."""
    notes: list[str] = []
    doubts: list[str] = []
    with tempfile.TemporaryDirectory(prefix="edgekeeper-check-") as folder:
        for watch in map(merged, root.watch or ()):
            try:
                made = build.parts(watch, SystemClock(), Path(folder), Path(folder), build.Here(node, root.kubernetes))
            except UsageError as err:
                return EngineVerdict("no watch can be made of it", str(err), (), ())
            except MissingError as err:
                doubts.append(f"watch {watch.name}: {err}; it cannot be run here, and is not judged here")
                continue
            notes += _notes(watch)
            doubts += [*_doubts(watch), *[f"watch {watch.name}: {why}" for why in await _in_cluster(made)]]
    notes += _doubled([merged(watch) for watch in root.watch or ()])
    return EngineVerdict("", None, tuple(notes), tuple(doubts))


async def _in_cluster(made: Parts) -> list[str]:
    """What stands in the way of cures in a cluster now, or why that cannot be told."""
    found = [(cure.name, await cure.rehearse()) for cure in made.cures if isinstance(cure, Rehearsed)]
    return [f"{name} could not be done now: {why}; whether it can be done when it is needed is not judged here" for name, why in found if why is not None]


def _notes(watch: Watch) -> list[str]:
    out: list[str] = []
    if watch.probe is None and watch.confirm == "probe":
        out.append(f"watch {watch.name} has no probe, so nothing can confirm a line and nothing will be cured; say probe: tls://HOST:PORT?sni=NAME")
    if watch.confirm == "none":
        out.append(f"watch {watch.name}: confirm: none lets whoever can write into its log (clients, often: request paths are logged) restart the service")
    if watch.preset == "netbird-proxy":
        out.append(f"watch {watch.name}: {LEAK}")
    if watch.shadow:
        out.append(f"watch {watch.name} only looks on (shadow: true)")
    if watch.probe is not None and watch.probe.from_ == "node":
        try:
            own = [one.address for one in held()]
            out += [f"watch {watch.name}: {text}" for text in advice([parse(url) for url in watch.probe.targets], own)]
        except (EdgekeeperError, UsageError):
            pass
    return out


def _doubled(watches: Sequence[Watch]) -> list[str]:
    """Watches of which each may cure the same service as often as its own budget allows."""
    out: list[str] = []
    first: dict[str, Watch] = {}
    for watch in watches:
        for step in watch.cure or (CureStep.model_validate(CureStep.own),):
            container = watch.docker if step.is_own else step.docker
            what = (container or step).model_dump_json(exclude={"stop_timeout", "timeout"})
            other = first.setdefault(what, watch)
            if other is not watch and build.budget_key(other) != build.budget_key(watch):
                out.append(
                    f"watch {watch.name} cures the same as watch {other.name}, and each counts for itself; make it one watch with both signs, or give both the same group"
                )
                break
    return out


def _doubts(watch: Watch) -> list[str]:
    sockets = [watch.docker_socket] if watch.docker is not None or any(step.docker for step in watch.cure or ()) else []
    out = [f"watch {watch.name}: {socket} is not on this machine; Docker is not judged here" for socket in sockets if not Path(socket).exists()]
    store = watch.budget.store
    if store is not None and not Path(store).parent.is_dir():
        out.append(f"watch {watch.name}: {Path(store).parent} is not on this machine; a cure that cannot be counted in {store} is not done")
    return out
