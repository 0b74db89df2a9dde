"""What is wanted and what is there, to what is done: create, update, repair, disable, delete, or held, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal

from edgekeeper.expose import body, brake, mark
from edgekeeper.expose.brake import Limits, Memory, may_go, may_leave, noted, too_many, wanted_again
from edgekeeper.expose.kinds import Anchor, Footing, Place, Remark, Service, Snapshot, Wish, Wishes
from edgekeeper.expose.mark import Mark
from edgekeeper.expose.names import canonical_host
from edgekeeper.model.moment import Moment

Kind = Literal["create", "update", "repair", "return", "adopt", "migrate", "relinquish", "disable", "delete"]

ORDER: Final[tuple[Kind, ...]] = ("create", "return", "repair", "adopt", "migrate", "update", "relinquish", "disable", "delete")
"""What helps clients comes first; what takes something away comes last."""

STALE_S: Final = 60.0
"""A view of the sources that is older deletes nothing; four times what a lost server takes to be noticed."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Who plans, and what may be done.

    ``force``: a person has said that the brakes do not count. ``adopt``: hosts that a person has named; ``adopt_asked``: objects of the
    cluster may ask for it too.
    """

    owner: str
    cluster: str
    listen_port: int = 443
    proxy_protocol: bool = True
    policy: Literal["sync", "upsert-only", "create-only"] = "sync"
    limits: Limits = field(default_factory=Limits)
    force: bool = False
    adopt: frozenset[str] = frozenset()
    adopt_asked: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """One write: the service (None when there is none yet), how its whole body is made (None for a delete), and why.

    Bodies are made when they are written: those of 10,000 hosts together would be a third of a pass's memory.
    """

    kind: Kind
    host: str
    why: str
    service: Service | None = None
    make: Callable[[], Mapping[str, Any]] | None = None
    wish: Wish | None = None

    @property
    def body(self) -> Mapping[str, Any] | None:
        """The whole body."""
        return self.make() if self.make is not None else None


@dataclass(frozen=True, slots=True)
class Held:
    """A host for which nothing is done though something would have to be; ``state`` is one word for the status."""

    host: str
    state: str
    why: str
    wish: Wish | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """One pass. ``right`` are hosts that are as they should be; ``refused`` says why no deletion at all is done, or is None."""

    actions: tuple[Action, ...]
    held: tuple[Held, ...]
    right: tuple[str, ...]
    remarks: tuple[Remark, ...]
    memory: Memory
    wanted: int
    own: int
    foreign: int
    refused: str | None = None
    wishes: Mapping[str, Wish] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _View:
    """What all hosts of a pass are decided with; see ``plan``."""

    snapshot: Snapshot
    places: Mapping[str, Place]
    footing: Footing
    setting: Setting
    moving: Mapping[str, Mapping[str, Any]]


def plan(
    snapshot: Snapshot,
    wishes: Wishes,
    places: Mapping[str, Place],
    footing: Footing,
    services: Sequence[Service],
    memory: Memory,
    setting: Setting,
    now: Moment,
    *,
    first: bool,
    moving: Mapping[str, Mapping[str, Any]] | None = None,
) -> Plan:
    """One full view of what is wanted beside one of what is there.

    ``places`` are those that are known, or were known last; ``first``: the first pass after a start, which takes nothing away. ``moving``:
    services that a migration has deleted and not made anew, by host.
    """
    there, marks = _by_host(services, setting)
    actions: list[Action] = []
    held: list[Held] = []
    right: list[str] = []
    remarks = list(wishes.remarks)
    view = _View(snapshot, places, footing, setting, moving or {})
    for host, wish in sorted(wishes.by_host.items()):
        done = _wanted(wish, there.get(host), marks.get(host), view)
        match done:
            case Action():
                actions.append(done)
            case Held():
                held.append(done)
                remarks += _told(done)
            case None:
                right.append(host)
    absent = sorted(marks.keys() - wishes.by_host.keys() - wishes.asked)
    held += [
        Held(host, "no-target", "an object asks for it, and its class has no target in edgekeeper's config any more; it stays")
        for host in sorted(marks.keys() & wishes.asked)
    ]
    leaving = {host for host in absent if _off(there[host])}
    memory = noted(memory, absent, leaving, snapshot.lists, now) if snapshot.whole else wanted_again(memory, wishes.by_host)
    refused = None
    if absent:
        gone, waiting, memory, refused = _absent(absent, marks, there, snapshot, wishes, footing, memory, setting, now, first=first)
        actions += gone
        held += waiting
    rank = {kind: i for i, kind in enumerate(ORDER)}
    actions.sort(key=lambda action: rank[action.kind])  # stable: by host within a kind
    return Plan(
        tuple(actions), tuple(held), tuple(right), tuple(remarks), memory, len(wishes.by_host), len(marks), len(services) - len(marks), refused, wishes.by_host
    )


def _by_host(services: Sequence[Service], setting: Setting) -> tuple[dict[str, Service], dict[str, Mark]]:
    """The services by host, and the marks of our own. Of two that differ in the case of their letters only, ours counts."""
    there: dict[str, Service] = {}
    marks: dict[str, Mark] = {}
    for service in services:
        host, found = canonical_host(service.host), mark.read(service.name)
        if found is not None and found.ours(setting.owner, setting.cluster) and host:
            there[host], marks[host] = service, found
        elif host not in marks:
            there[host] = service
    return there, marks


def _off(service: Service) -> bool:
    return not service.raw.get("enabled", True)


# hosts that are wanted ------------------------------------------------------------------------


def _wanted(wish: Wish, service: Service | None, own: Mark | None, view: _View) -> Action | Held | None:
    """What a wanted host needs: an action, a reason to hold, or nothing."""
    host, options, setting = wish.host, wish.options, view.setting
    if options.hold is not None:
        return Held(host, "held", options.hold, wish)
    if service is not None and own is None and not _to_adopt(wish, service, setting):
        return Held(host, "conflict", _foreign(service), wish)
    place = view.places.get(wish.klass)
    if place is None:
        unknown = view.snapshot.unplaced.get(wish.klass) or "it is not known yet"
        return Held(host, "no-target", f"the target of class {wish.klass}: {unknown}", wish)
    anchor = view.footing.by_address.get(place.address)
    if anchor is None:
        return Held(host, "no-resource", f"the mesh has no resource for {place.address} yet: {view.footing.why}", wish)
    name = Mark.of(setting.owner, setting.cluster, wish.origin, keep=options.delete == "keep", force=options.force)
    if service is None and host in view.moving:
        made = partial(_remade, view.moving[host], host, name.text, wish, place, anchor, setting)
        return Action("create", host, "making it anew in TLS mode was interrupted; it is made with all that was set in it", None, made, wish)
    if service is None:
        made = partial(body.fresh, host, name.text, options, place, anchor, listen_port=setting.listen_port, proxy_protocol=setting.proxy_protocol)
        return Action("create", host, f"{wish.origin.text} wants it, and there is no service", None, made, wish)
    return _there(wish, service, own, name, place, anchor, view)


def _remade(raw: Mapping[str, Any], host: str, name: str, wish: Wish, place: Place, anchor: Anchor, setting: Setting) -> dict[str, Any]:
    """A service in TLS mode with what another one had set."""
    old = {**raw, "domain": host}
    return body.in_tls(body.laid_over(old, host, name, wish.options, place, anchor, listen_port=setting.listen_port, proxy_protocol=setting.proxy_protocol))


def _there(wish: Wish, service: Service, own: Mark | None, name: Mark, place: Place, anchor: Anchor, view: _View) -> Action | Held | None:
    """A host whose service is there, and ours or to be adopted."""
    host, setting = wish.host, view.setting
    returns = own is not None and own.leaving
    hands_off = _hands_off(service, returns=returns)
    if hands_off is not None:
        return Held(host, *hands_off, wish)
    make = partial(
        body.laid_over,
        service.raw,
        host,
        name.text,
        wish.options,
        place,
        anchor,
        listen_port=setting.listen_port,
        proxy_protocol=setting.proxy_protocol,
        enabled=True if returns else None,
    )
    wanted = make()
    if setting.policy == "create-only":
        found = body.differences(service.raw, wanted)
        return Held(host, "drift", f"policy create-only: left as it is ({'; '.join(found)})", wish) if found else None
    mode = str(service.raw.get("mode") or "http")
    if mode != "tls":
        if host in setting.adopt:
            why = f"its service is in mode {mode}, which cannot be changed: it is deleted and made anew, without authentication, paths and headers"
            return Action("migrate", host, f"{why}; {'; '.join(body.differences(service.raw, body.in_tls(wanted)))}", service, make, wish)
        return Held(
            host, "conflict", f"its service is in mode {mode}, which cannot be changed; `edgekeeper expose adopt {host}` deletes it and makes it anew", wish
        )
    if own is None:
        why = f"{wish.origin.text} wants it, and it was asked to be adopted"
        return Action("adopt", host, f"{why}; {'; '.join(body.differences(service.raw, wanted))}", service, make, wish)
    found = body.differences(service.raw, wanted)
    if returns:
        return Action("return", host, f"{wish.origin.text} wants it again, before it was deleted", service, make, wish)
    dead = [target for target in targets_of(service) if target not in view.footing.alive]
    if found:
        if dead:
            return Action("repair", host, f"its target {dead[0]} is not in the mesh any more: {'; '.join(found)}", service, make, wish)
        return Action("update", host, "; ".join(found), service, make, wish)
    return None


def _hands_off(service: Service, *, returns: bool) -> tuple[str, str] | None:
    """The state and the reason of a service that must not be written, whatever is wanted."""
    if service.raw.get("terminated"):
        return "terminated", "the mesh has terminated this service and takes no change of it; delete it there"
    odd = body.strange(service.raw)
    if odd is not None:
        return "held", f"its service in the mesh has a form that is not understood ({odd}); it is left as it is"
    if not returns and _off(service):
        return "disabled", _OFF
    return None


_OFF: Final = "it was switched off by hand in the mesh, and is not written until it is switched on there: the mesh would route it again at any write"
"""Read in the server's source (August 2026): a PUT that leaves a service disabled sends it to the proxies all the same."""


def _to_adopt(wish: Wish, service: Service, setting: Setting) -> bool:
    """An object may ask for a service that is nobody's; for another edgekeeper's a person has to, or two objects in two clusters would take it by turns."""
    asked = wish.options.adopt and (setting.adopt_asked or wish.origin.kind == "File")
    return wish.host in setting.adopt or (asked and mark.read(service.name) is None)


def _foreign(service: Service) -> str:
    other = mark.read(service.name)
    if other is not None:
        return f"its service belongs to {other.owner}/{other.cluster}; it is left alone until `edgekeeper expose adopt`, or until that one relinquishes it"
    return "a service that is not edgekeeper's has this host; it is left alone until `edgekeeper expose adopt`"


def targets_of(service: Service) -> list[str]:
    """The ids of the resources that a service leads to."""
    found = service.raw.get("targets")
    return [str(target.get("target_id", "")) for target in found if isinstance(target, Mapping)] if isinstance(found, list) else []


_REASONS = {"conflict": "Conflict", "no-target": "NoTarget", "terminated": "Terminated"}


def _told(held: Held) -> Iterable[Remark]:
    """What the owner of an object should know of a host that is held; waits that end by themselves are not told."""
    reason = _REASONS.get(held.state)
    if reason is not None and held.wish is not None:
        yield Remark(held.wish.origin, reason, f"{held.host}: {held.why}", host=held.host)


# hosts that are not wanted any more -----------------------------------------------------------


def _absent(
    absent: Sequence[str],
    marks: Mapping[str, Mark],
    there: Mapping[str, Service],
    snapshot: Snapshot,
    wishes: Wishes,
    footing: Footing,
    memory: Memory,
    setting: Setting,
    now: Moment,
    *,
    first: bool,
) -> tuple[list[Action], list[Held], Memory, str | None]:
    """What is taken away, what is held back, what is remembered of that, and why all of it is refused."""
    doubt = _doubt(snapshot, setting, first=first)
    ready: list[tuple[str, Kind]] = []
    held: list[Held] = []
    for host in absent:
        absence = memory.absent.get(host)
        why = doubt
        off = _off(there[host])  # also by hand: the mesh would route it again if it were written
        kind: Kind = "delete" if off else "disable"
        if why is None and marks[host].kind in snapshot.absent:
            why = f"the cluster has no {marks[host].kind} objects at all just now"
        if why is None and marks[host].keep:
            why = "its object asked to keep it (delete-policy)"
        if why is None and not setting.force:
            if absence is None:
                why = "its absence was not counted yet"
            else:
                why = None if off and marks[host].leaving else may_leave(absence, now, setting.limits)
                why = may_go(absence, now, setting.limits) if why is None and off else why
        if why is None:
            ready.append((host, kind))
        else:
            more = f" (the last list that was asked for did not count: {snapshot.relisted})" if snapshot.relisted else ""
            held.append(Held(host, "leaving" if kind == "delete" else "absent", f"no object wants it; {why}{more}"))
    refused = None if setting.force else _refused(ready, marks, wishes, setting.limits)
    if refused is not None:
        held += [Held(host, "refused", f"no object wants it; {refused}") for host, _ in ready]
        return [], held, brake.refused(memory, {host for host, _ in ready}), refused
    anew = set() if setting.force else {host for host, _ in ready if memory.absent[host].refused}
    held += [Held(host, "absent", "no object wants it; it was refused with too many others, and has to be absent anew") for host in sorted(anew)]
    gone = [_take(host, kind, there[host], marks[host], footing) for host, kind in ready if host not in anew]
    return gone, held, brake.begun_anew(memory, anew, now), None


def _doubt(snapshot: Snapshot, setting: Setting, *, first: bool) -> str | None:
    """Why nothing at all is taken away in this pass."""
    if setting.policy != "sync":
        return f"policy {setting.policy} deletes nothing"
    if not snapshot.whole:
        return f"the sources are not known in full: {snapshot.why}"
    if snapshot.stale_s > STALE_S:
        return f"the sources were last known {snapshot.stale_s:.0f} s ago"
    if first and not setting.force:
        return "the first pass after a start deletes nothing"
    return None


def _refused(ready: Sequence[tuple[str, Kind]], marks: Mapping[str, Mark], wishes: Wishes, limits: Limits) -> str | None:
    """Why the brakes let none of those go that are ready to; an object may have said that its hosts do not count (force)."""
    counted = [host for host, _ in ready if not marks[host].force]
    if not counted:
        return None
    way = "`edgekeeper expose apply --force` does it all the same"
    if not wishes.by_host:
        return f"nothing at all is wanted, which is not believed; {way}"
    going = {*counted, *(host for host, found in marks.items() if found.leaving and not found.force)}
    why = too_many(len(going), len(marks), limits)
    new = any(kind == "disable" or not marks[host].leaving for host, kind in ready)
    return f"{why}; {way}" if why is not None and new else None


def _take(host: str, kind: Kind, service: Service, own: Mark, footing: Footing) -> Action:
    if kind == "delete":
        return Action("delete", host, "no object wants it, and it was disabled for long enough", service)
    dead = any(target not in footing.alive for target in targets_of(service))
    # A service whose resource is gone takes no change (422) but one that leads it to another; it is switched off with it, so nobody gets there.
    lead = next((anchor for anchor in footing.by_address.values() if anchor.target_type == "subnet"), None) if dead else None
    return Action("disable", host, "no object wants it; it is deleted later", service, partial(body.disabled, service, own.gone().text, lead))


def only(made: Plan, hosts: Collection[str]) -> Plan:
    """The part of a plan that is about these hosts, which are wanted: that other ones may not go does not concern them."""
    origins = {wish.origin for host, wish in made.wishes.items() if host in hosts}
    return replace(
        made,
        actions=tuple(action for action in made.actions if action.host in hosts),
        held=tuple(held for held in made.held if held.host in hosts),
        right=tuple(host for host in made.right if host in hosts),
        remarks=tuple(remark for remark in made.remarks if remark.origin in origins),
        refused=None,
    )
