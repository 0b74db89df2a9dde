"""A watch's section of the config -> its parts: policy, matcher, source, asker, guards, cures, budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.watch import BurstOf, Container, CureStep, Watch, WatchBudget, WatchProbe
from edgekeeper.config.watch import Fingerprint as Written
from edgekeeper.errors import UsageError
from edgekeeper.host.docker import Docker, Which, network
from edgekeeper.model.budget import Bucket, Budget, Window
from edgekeeper.model.maintenance import window
from edgekeeper.ports import Clock
from edgekeeper.probe.target import Target, parse
from edgekeeper.watch.asker import TargetsAsker
from edgekeeper.watch.cures.command import CommandCure
from edgekeeper.watch.cures.docker import DockerCure
from edgekeeper.watch.cures.http import HttpCure
from edgekeeper.watch.cures.netbird import ClientsCure
from edgekeeper.watch.cures.systemd import SystemdCure
from edgekeeper.watch.fingerprint import Burst, Fingerprint, Matcher
from edgekeeper.watch.guards import Guards, Health
from edgekeeper.watch.onbehalf import OnBehalf, PeerAsker
from edgekeeper.watch.parts import Parts
from edgekeeper.watch.pause import pause_file
from edgekeeper.watch.seams import Cure, Inside, Source
from edgekeeper.watch.siblings import Lease, Place
from edgekeeper.watch.sources.command import CommandSource
from edgekeeper.watch.sources.docker import DockerSource
from edgekeeper.watch.sources.file import FileSource
from edgekeeper.watch.sources.journald import JournaldSource
from edgekeeper.watch.sources.netbird import NetbirdSource
from edgekeeper.watch.state import Policy

_NOBODY = Container.model_validate("nobody")
"""A step that restarts the followed container is refused at load where none is followed."""


@dataclass(frozen=True, slots=True)
class Here:
    """Where a watch is: this node's name, and how the cluster is reached, which cures in it need."""

    node: str
    kubernetes: Kubernetes


def parts(watch: Watch, clock: Clock, run_dir: Path, state: Path, here: Here) -> Parts:
    """Everything of one watch; UsageError when a target or a pattern cannot be used. ``state`` is the role's folder that survives.

    MissingError when it has a cure in a cluster and the client for that is not installed.
    """
    docker = Docker(watch.docker_socket)
    probe = watch.probe
    return Parts(
        name=watch.name,
        policy=policy(watch),
        matcher=matcher(watch),
        source=_source(watch, docker, clock, state),
        asker=_asker(watch, probe) if probe is not None else None,
        guards=_guards(watch, docker, run_dir),
        cures=[_cure(step, watch, docker, clock, here) for step in watch.cure or (CureStep.model_validate(CureStep.own),)],
        budget=budget(watch.budget),
        key=budget_key(watch),
        blind_after_s=watch.blind_after,
    )


def lease(watch: Watch, clock: Clock, here: Here) -> Lease | None:
    """The Lease of the watch's group; None when it names none."""
    if watch.group is None or watch.group.lease is None:
        return None
    from edgekeeper.watch.grouplease import GroupLease  # noqa: PLC0415 - needs the extra kube

    return GroupLease(watch.group.lease, here.kubernetes, here.node, clock, watch.group.wait)


def onbehalf(watch: Watch, node: str, place: Place) -> OnBehalf | None:
    """What this node asks for its siblings; None when no member has URLs of its own."""
    group, probe = watch.group, watch.probe
    if group is None or probe is None:
        return None
    askers = {
        name: TargetsAsker([_target(watch, f"group.members.{name}", url) for url in urls], need=probe.need, timeout_s=probe.timeout)
        for name, urls in group.members.items()
        if name != node and urls
    }
    if not askers:
        return None
    return OnBehalf(place, askers, every_s=probe.every, confirm_every_s=probe.confirm_every, proof_every_s=watch.proof.every, timeout_s=probe.timeout)


def asked_by_siblings(watch: Watch, made: Parts, place: Place) -> Parts:
    """The parts, with the siblings asking where the config wants it so; this node asks when none of them is heard."""
    if watch.probe is None or watch.probe.from_ in {"node", place.siblings.node} or made.asker is None:
        return made
    asker = PeerAsker(place, made.asker, watch.probe.from_, every_s=watch.probe.every, timeout_s=watch.probe.timeout)
    return replace(made, asker=asker, policy=replace(made.policy, timeout_s=asker.timeout_s))  # what a sibling found comes later than one's own answer


def policy(watch: Watch) -> Policy:
    """How the watch decides."""
    probe = watch.probe or WatchProbe.model_validate({"command": ["true"]})  # for its times; without a probe nobody is asked
    burst = watch.burst or BurstOf.model_validate({})
    return Policy(
        confirm=watch.confirm == "probe",
        probed=watch.probe is not None,
        every_s=probe.every,
        timeout_s=probe.timeout,
        confirm_every_s=probe.confirm_every,
        rounds=probe.rounds,
        failures=probe.failures,
        grace_s=probe.grace,
        burst=Burst(burst.lines, burst.distinct, burst.within),
        steps=len(watch.cure or (None,)),
        proof_every_s=watch.proof.every,
        proof_within_s=watch.proof.within,
        shadow=watch.shadow,
    )


def matcher(watch: Watch) -> Matcher | None:
    """What looks for the watch's fingerprints; None when it has none."""
    return _matcher(watch.name, watch.fingerprints or (), watch.untrusted_after or ())


def recovered(watch: Watch) -> Matcher | None:
    """What looks for lines that say the service is well again; None when there are none."""
    return _matcher(watch.name, watch.recovered or (), watch.untrusted_after or ())


def budget(written: WatchBudget) -> Budget:
    """The rules of a budget; all of them count at once."""
    rules = (Bucket(written.burst, written.every), Window(written.per_hour, 3600.0))
    cooldown = (Window(1, written.cooldown),) if written.cooldown else ()
    return Budget((*rules, *cooldown), pause_s=written.every)


def budget_key(watch: Watch) -> str:
    """The budget's name in the store: the group's, which its watches share, or the watch's own."""
    return f"watch-group:{watch.group.name}" if watch.group is not None else f"watch:{watch.name}"


def which(container: Container) -> Which:
    """How a container of the config is found."""
    label, _, value = (container.label or "").partition("=")
    return Which(name=container.name, label=((label, value),) if container.label else (), image=container.image)


def _matcher(name: str, written: tuple[Written, ...], untrusted_after: tuple[str, ...]) -> Matcher | None:
    if not written:
        return None
    try:
        return Matcher([Fingerprint(text=f.text or "", regex=f.regex or "", level=f.level or "") for f in written], untrusted_after)
    except ValueError as err:
        msg = f"watch {name}: fingerprints: {err}"
        raise UsageError(msg) from err


def _source(watch: Watch, docker: Docker, clock: Clock, state: Path) -> Source | None:
    mark = state / f"mark-{watch.name}.json"
    if watch.docker is not None:
        source = DockerSource(docker, which(watch.docker), clock, mark)
        health = watch.guard.health.url if watch.guard is not None and watch.guard.health is not None else None
        return NetbirdSource(source, docker, which(watch.docker), health) if watch.preset == "netbird-proxy" else source
    if watch.file is not None:
        return FileSource(watch.file, clock, mark)
    if watch.journald is not None:
        return JournaldSource(watch.journald, clock, mark)
    return CommandSource(watch.command, clock) if watch.command is not None else None


def _asker(watch: Watch, probe: WatchProbe) -> TargetsAsker:
    targets = [_target(watch, "probe.targets", url) for url in probe.targets]
    return TargetsAsker(targets, command=probe.command or (), need=probe.need, timeout_s=probe.timeout)


def _target(watch: Watch, key: str, url: str) -> Target:
    try:
        return parse(url)
    except UsageError as err:
        msg = f"watch {watch.name}: {key}: {err}"
        raise UsageError(msg) from err


def _guards(watch: Watch, docker: Docker, run_dir: Path) -> list[Guards]:
    guard = watch.guard
    pause = pause_file(str(run_dir), watch.name)
    if guard is None:
        return [Guards(pause=pause)]
    health = Health(guard.health.url, guard.health.need, _inside(guard.health.inside, docker)) if guard.health is not None else None
    windows = [window(m.days, m.start, m.to) for m in guard.maintenance]
    reachable = [_target(watch, "guard.reachable", url) for url in guard.reachable]
    return [Guards(pause=pause, maintenance=windows, zone=guard.zone, health=health, reachable=reachable)]


def _inside(container: Container | None, docker: Docker) -> Inside | None:
    return None if container is None else lambda: network(docker, which(container))


def _cure(step: CureStep, watch: Watch, docker: Docker, clock: Clock, here: Here) -> Cure:
    make: Mapping[str, Callable[[], Cure]] = {
        "docker": lambda: DockerCure(docker, which(step.docker or watch.docker or _NOBODY), step.stop_timeout),
        "systemd": lambda: SystemdCure(step.systemd or "", deadline_s=step.timeout),
        "command": lambda: CommandCure(step.command or (), deadline_s=step.timeout),
        "http": lambda: HttpCure(step.http or "", method=step.method, inside=_inside(step.inside, docker), token_file=step.token_file, deadline_s=step.timeout),
        "netbird_clients": lambda: ClientsCure(step.netbird_clients or "", inside=_inside(step.inside, docker), deadline_s=step.timeout),
        "kubernetes": lambda: _kubernetes(step, clock, here),
    }
    return make[next((kind for kind in CureStep.kinds if getattr(step, kind) is not None), "docker")]()


def _kubernetes(step: CureStep, clock: Clock, here: Here) -> Cure:
    from edgekeeper.watch.cures.kubernetes import PodsCure, RolloutCure  # noqa: PLC0415 - needs the extra kube

    written = step.kubernetes
    assert written is not None  # noqa: S101 - the kind was chosen by it
    if written.rollout is not None:
        return RolloutCure(written.rollout, here.kubernetes, clock, deadline_s=step.timeout)
    return PodsCure(written, here.kubernetes, here.node, clock, grace_s=step.stop_timeout, deadline_s=step.timeout)
