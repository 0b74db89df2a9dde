"""The owner of a VIP breaks: its machine, its processes, or the service behind the VIP."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Awaitable, Callable

from edgekeeper.lab import held
from edgekeeper.lab.cluster import Cluster
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.vip_moves import AT_S, MOVED_ONCE, ONE_OWNER, PAIR, begun
from edgekeeper.lab.holders import worst
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.owners import up
from edgekeeper.lab.plain_keepalived import KUBEADM, KUBEADM_CHECK, Check
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.vips import DNS, Lan

Fault = Callable[[Lan, str], Awaitable[str]]
"""Does something to a node and says what."""


async def killed(lan: Lan, node: str) -> str:
    """The machine is off: no process, no link."""
    await lan.unplug(node)
    lan.everything(node, signal.SIGKILL)
    return f"{node} is off: its link is down and its processes are gone"


async def link_down(lan: Lan, node: str) -> str:
    """Its cable is pulled: it sees that itself."""
    await lan.unplug(node)
    return f"the cable of {node} is pulled"


async def frozen(lan: Lan, node: str) -> str:
    """All its processes stand still; its kernel still answers ARP."""
    lan.everything(node, signal.SIGSTOP)
    lan.watch.off(node)
    return f"{node} is frozen (SIGSTOP to all its processes)"


async def service_killed(lan: Lan, node: str) -> str:
    """The service behind the VIP dies; its port is closed."""
    lan.stage.members[node].signal(signal.SIGKILL)
    return f"the service on {node} is killed (SIGKILL)"


async def service_hangs(lan: Lan, node: str) -> str:
    """It takes questions and never answers."""
    lan.stage.members[node].signal(signal.SIGSTOP)
    return f"the service on {node} is a black hole (SIGSTOP)"


async def service_hangs_alone(lan: Lan, node: str) -> str:
    """edgekeeper stands still at the same time: only keepalived's own track script is left."""
    lan.stage.members[node].signal(signal.SIGSTOP)
    for supervisor in lan.supervisors[node]:
        supervisor.signal(signal.SIGSTOP)
    return f"the service on {node} is a black hole, and so is its edgekeeper (SIGSTOP to both)"


def hurt(fault: Fault, *, advert_s: float = 1.0, duration: float = 8.0) -> Script:
    """500 questions a second, and after the first second something happens to the owner."""

    async def script(stage: Stage) -> Measured:
        lan, _, owner = await begun(stage, DNS, advert_s=advert_s)
        load = await lan.load(duration=duration)
        await load.at(AT_S)
        began = time.monotonic()
        stage.note(await fault(lan, owner))
        tally = await load.tally()
        return lan.measured(tally, began)

    return script


def _outage(limit: float) -> Promise:
    return Promise("outage_s", "longest time without an answer", limit, "s")


def _case(name: str, about: str, script: Script, limit: float, *, ci: bool = False) -> Case:
    return Case(name, about, script, (_outage(limit), MOVED_ONCE, ONE_OWNER), plan=PAIR, headline="outage_s", unit="s", ci=ci)


VIP_KILLED = Drill(
    "vip-killed",
    "the machine that owns a VIP dies, or loses its link, under 500 questions a second",
    (
        _case("defaults", "advert 1 s: the protocol itself allows 3 x advert + skew", hurt(killed), 3.7),
        _case("advert-100ms", "advert 100 ms", hurt(killed, advert_s=0.1, duration=4.0), 0.5, ci=True),
        _case("link-down", "its cable is pulled, advert 100 ms", hurt(link_down, advert_s=0.1, duration=4.0), 0.5),
    ),
    engine="keepalived",
)
VIP_FROZEN = Drill(
    "vip-frozen",
    "all processes of the machine that owns a VIP freeze under 500 questions a second",
    (
        _case("defaults", "advert 1 s: the protocol itself allows 3 x advert + skew", hurt(frozen), 3.7),
        _case("advert-100ms", "advert 100 ms", hurt(frozen, advert_s=0.1, duration=4.0), 0.5),
    ),
    engine="keepalived",
)
VIP_SERVICE_DEAD = Drill(
    "vip-service-dead",
    "the service behind a VIP is killed on its owner, under 500 questions a second",
    (
        _case("defaults", "SIGKILL, advert 1 s; plain: a check each second, fall 3", hurt(service_killed), 1.0),
        _case("advert-100ms", "SIGKILL, advert 100 ms", hurt(service_killed, advert_s=0.1, duration=5.0), 1.0),
    ),
    engine="keepalived",
)
VIP_SERVICE_BLACKHOLE = Drill(
    "vip-service-blackhole",
    "the service behind a VIP becomes a black hole on its owner, under 500 questions a second",
    (
        _case("defaults", "SIGSTOP, advert 1 s; plain: a check each second that gives up after 0.9 s, fall 3", hurt(service_hangs), 1.0),
        _case("advert-100ms", "SIGSTOP, advert 100 ms", hurt(service_hangs, advert_s=0.1, duration=5.0), 1.0, ci=True),
        _case("script-alone", "edgekeeper freezes as well: the track script alone, fall 3 each second", hurt(service_hangs_alone, duration=10.0), 4.0),
    ),
    engine="keepalived",
)

API_PORT = 6443
_GUIDE_CHECK = """#!{python} -I
import http.client, sys
try:
    asked = http.client.HTTPConnection("127.0.0.1", 6443, timeout=2)
    asked.request("GET", "/healthz")
    sys.exit(asked.getresponse().status >= 400)
except OSError:
    sys.exit(1)
"""


def kubeadm(mode: str) -> Script:
    """An API server behind the VIP on each node, clients that open a connection for each request; on the owner it is killed or hangs."""

    async def script(stage: Stage) -> Measured:
        lan = Lan(stage, DNS, asks={"http": f"http://127.0.0.1:{API_PORT}/healthz"})
        cluster = Cluster(stage)
        for node in lan.nodes:
            argv = [sys.executable, "-m", "edgekeeper.lab.apiserver", "--listen", f"0.0.0.0:{API_PORT}", "--name", node]
            stage.members[node] = await stage.spawn(node, f"{node}-api", argv)
            # A check whose first run fails counts as failed until it has passed twice: the node would begin with a lowered priority.
            await stage.until(f"{node} answers", lambda n=node: cluster.ask(f"127.0.0.1:{API_PORT}", namespace=n, tls=False))  # type: ignore[misc]
        check = stage.folder / "check_apiserver.py"
        check.write_text(_GUIDE_CHECK.format(python=sys.executable), encoding="utf-8")
        check.chmod(0o755)
        guide = Check(str(check), KUBEADM_CHECK.interval, KUBEADM_CHECK.timeout, KUBEADM_CHECK.fall, KUBEADM_CHECK.rise, KUBEADM_CHECK.weight)
        await up(lan, manner=KUBEADM, check=guide)
        owner = lan.owner()
        duration = 44.0 if stage.side is Side.PLAIN else 6.0
        server = f"192.0.2.53:{API_PORT}"
        load = await cluster.hold("--timeout", "1", clients=0, fresh=50, server=server, tls=False, duration=duration)
        await load.at(AT_S)
        began = time.monotonic()
        stage.note(await (service_killed if mode == "killed" else service_hangs)(lan, owner))
        found = await load.finish()
        outage = held.tally(found).outage
        length = 0.0 if outage is None else min(outage.max_s, load.started + duration - outage.first_bad)
        return cluster.measured(found, outage_s=round(length, 3), **worst(lan.held(began)))

    return script


VIP_KUBEADM = Drill(
    "vip-kubeadm",
    "the API server behind a VIP fails on its owner, 50 fresh requests a second; plain: the settings of kubeadm's guide",
    tuple(
        Case(name, about, kubeadm(name), (_outage(1.0), MOVED_ONCE), plan=PAIR, headline="outage_s", unit="s", most_runs=3)
        for name, about in (("killed", "it is killed"), ("hangs", "it accepts connections and never answers"))
    ),
    engine="keepalived",
)
