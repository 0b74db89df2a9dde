"""What tests of a plan are written with: services, wishes, one pass, and passes one after the other."""

from dataclasses import replace

from edgekeeper.expose import body
from edgekeeper.expose.brake import Limits, Memory
from edgekeeper.expose.kinds import Anchor, Footing, Options, Origin, Place, Service, Snapshot, Wish, Wishes
from edgekeeper.expose.mark import Mark
from edgekeeper.expose.plan import Setting, plan
from edgekeeper.model.moment import Moment

SETTING = Setting("home", "a", limits=Limits(absent_lists=3, grace_s=300, disabled_s=600))
PLACES = {"default": Place("10.96.0.10", 443)}
FOOTING = Footing({"10.96.0.10": Anchor("res-1", "subnet")}, frozenset({"res-1"}))


def at(seconds: float) -> Moment:
    return Moment(1_000_000 + seconds, seconds, "boot", seconds)


def wish(host: str, name: str = "", **options) -> Wish:
    return Wish(host, Origin("Ingress", "shop", name or host), "default", Options(**options))


def wishes(*hosts: str, **options) -> Wishes:
    return Wishes({host: wish(host, **options) for host in hosts})


def made(host: str, owner: str = "home", cluster: str = "a", *, leaving: bool = False, **more) -> Service:
    mark = Mark.of(owner, cluster, Origin("Ingress", "shop", host), keep=more.pop("keep", False), force=more.pop("force", False))
    name = (mark.gone() if leaving else mark).text
    raw = body.fresh(host, name, Options(), PLACES["default"], FOOTING.by_address["10.96.0.10"], listen_port=443, proxy_protocol=True)
    raw |= {"id": f"id-{host}", "enabled": not leaving, **more}
    return Service(f"id-{host}", host, str(raw["name"]), raw)


def view(lists: int = 1, **more) -> Snapshot:
    return Snapshot((), PLACES, lists, **{"whole": True, **more})


FRESH = Memory()


def run(wanted: Wishes, services=(), memory=FRESH, *, now=0.0, first=False, lists=1, setting=SETTING, footing=FOOTING, places=PLACES, **seen):
    return plan(view(lists, **seen), wanted, places, footing, list(services), memory, setting, at(now), first=first)


def asking(wanted: Wishes, services):
    """With annotations that may adopt."""
    return run(wanted, services, setting=replace(SETTING, adopt_asked=True))


def kinds(done) -> list[tuple[str, str]]:
    return [(action.kind, action.host) for action in done.actions]


def passes(wanted: Wishes, services, *, each=60.0, count=60, setting=SETTING):
    """So many passes, each with a full list, the services as the plans leave them; all that was done, in order."""
    memory, out, there = Memory(), [], {service.host: service for service in services}
    for i in range(count):
        done = run(wanted, there.values(), memory, now=i * each, lists=i + 1, first=i == 0, setting=setting)
        memory = done.memory
        for action in done.actions:
            out.append((i, action.kind, action.host))
            if action.kind == "delete":
                del there[action.host]
            else:
                there[action.host] = Service(action.service.id, action.host, action.body["name"], dict(action.body))
    return out, there
