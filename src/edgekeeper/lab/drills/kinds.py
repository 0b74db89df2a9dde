"""unbound, BIND, dnsmasq and pdns-recursor as members, with stock and hardened settings.

They forward to an upstream of the lab, because there is no Internet here; DNSSEC validation is off,
because that upstream signs nothing. All else is what the package installs, or what hardening guides say.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.truth import SETTLE_S, clients_say, served_by
from edgekeeper.lab.edges import PlainEdge, ProductEdge
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import MEMBER_PORT, Stage
from edgekeeper.lab.topology import BACK, MEMBERS

UPSTREAMS = {"stock": MEMBERS[9], "hardened": MEMBERS[10]}
NEEDS = ("unbound=unbound", "named=bind9", "dnsmasq=dnsmasq-base", "pdns_recursor=pdns-recursor")


@dataclass(frozen=True, slots=True)
class Kind:
    """One resolver as a member: its name, address, upstream and whether it is hardened."""

    program: str
    address: str
    hardened: bool

    @property
    def setting(self) -> str:
        """``stock`` or ``hardened``."""
        return "hardened" if self.hardened else "stock"

    @property
    def name(self) -> str:
        """The member's name."""
        return f"{self.program.replace('_', '-')}-{self.setting}"

    @property
    def upstream(self) -> str:
        """Where it forwards to."""
        return UPSTREAMS[self.setting]


KINDS_ALL = tuple(
    Kind(program, MEMBERS[2 * n + hardened], bool(hardened))
    for n, program in enumerate(("unbound", "named", "dnsmasq", "pdns_recursor"))
    for hardened in (0, 1)
)


def unbound(kind: Kind) -> str:
    """unbound.conf."""
    hard = """  hide-identity: yes
  hide-version: yes
  harden-glue: yes
  harden-dnssec-stripped: yes
  harden-below-nxdomain: yes
  harden-referral-path: yes
  use-caps-for-id: no
  deny-any: yes
  minimal-responses: yes
  qname-minimisation: yes
"""
    return f"""server:
  interface: {kind.address}
  port: {MEMBER_PORT}
  access-control: {BACK}/32 allow
  do-daemonize: no
  username: ""
  chroot: ""
  pidfile: ""
  use-syslog: no
  module-config: "iterator"
  do-ip6: no
{hard if kind.hardened else ""}forward-zone:
  name: "."
  forward-addr: {kind.upstream}@{MEMBER_PORT}
remote-control:
  control-enable: no
"""


def named(kind: Kind, folder: str) -> str:
    """named.conf."""
    hard = """  version none;
  hostname none;
  server-id none;
  minimal-any yes;
  minimal-responses yes;
  allow-transfer { none; };
  max-recursion-depth 7;
"""
    return f"""options {{
  directory "{folder}";
  pid-file none;
  session-keyfile none;
  managed-keys-directory "{folder}";
  listen-on port {MEMBER_PORT} {{ {kind.address}; }};
  listen-on-v6 {{ none; }};
  recursion yes;
  allow-query {{ {BACK}/32; }};
  allow-recursion {{ {BACK}/32; }};
  dnssec-validation no;
  forward only;
  forwarders port {MEMBER_PORT} {{ {kind.upstream}; }};
{hard if kind.hardened else ""}}};
controls {{ }};
"""


def dnsmasq(kind: Kind) -> str:
    """dnsmasq.conf."""
    # The lab's answers are documentation addresses, which dnsmasq takes for private ones.
    hard = "domain-needed\nbogus-priv\nstop-dns-rebind\nrebind-localhost-ok\nrebind-domain-ok=/example/root-servers.net/\ndns-loop-detect\n"
    return f"""port={MEMBER_PORT}
listen-address={kind.address}
bind-interfaces
no-resolv
no-hosts
user=root
pid-file=
server={kind.upstream}#{MEMBER_PORT}
{hard if kind.hardened else ""}"""


def recursor(kind: Kind, folder: str) -> str:
    """recursor.conf (the 4.x form, which 5.x reads too with --enable-old-settings)."""
    hard = "version-string=anonymous\nserver-id=disabled\nany-to-tcp=yes\nroot-nx-trust=yes\n"
    return f"""local-address={kind.address}
local-port={MEMBER_PORT}
allow-from={BACK}/32
config-dir={folder}
socket-dir={folder}
daemon=no
write-pid=no
dnssec=off
forward-zones-recurse=.={kind.upstream}:{MEMBER_PORT}
security-poll-suffix=
export-etc-hosts=no
threads=1
{hard if kind.hardened else ""}"""


async def start(stage: Stage, kind: Kind) -> None:
    """Start one resolver in the members' namespace."""
    folder = stage.folder / kind.name
    folder.mkdir(mode=0o755)
    texts = {
        "unbound": unbound(kind),
        "named": named(kind, str(folder)),
        "dnsmasq": dnsmasq(kind),
        "pdns_recursor": recursor(kind, str(folder)),
    }
    file = folder / ("recursor.conf" if kind.program == "pdns_recursor" else "server.conf")
    file.write_text(texts[kind.program], encoding="ascii")
    argv = {
        "unbound": ["unbound", "-d", "-c", str(file)],
        "named": ["named", "-g", "-c", str(file), "-n", "1"],
        "dnsmasq": ["dnsmasq", "-k", "-C", str(file)],
        "pdns_recursor": ["pdns_recursor", f"--config-dir={folder}"],
    }
    actor = await stage.spawn("members", kind.name, argv[kind.program])

    async def answers() -> bool:
        actor.must_run()
        reply = await stage.ask("edge", kind.address, MEMBER_PORT, "first.example.")
        return reply is not None and reply.rcode == 0

    await stage.until(f"{kind.name} answers", answers)


def kinds(question: str | None) -> Script:
    """Eight resolvers, and the question that tells their health (None: the default)."""

    async def script(stage: Stage) -> Measured:
        return await _kinds(stage, question)

    return script


async def _kinds(stage: Stage, question: str | None) -> Measured:
    """The upstream of the hardened resolvers dies and comes back, then that of the stock ones."""
    for setting, address in UPSTREAMS.items():
        await stage.add_member(f"upstream-{setting}", address, "--ttl", "1")
    await asyncio.sleep(0.5)
    for kind in KINDS_ALL:
        await start(stage, kind)
    members = tuple((kind.name, f"{kind.address}:{MEMBER_PORT}") for kind in KINDS_ALL)
    if stage.side is Side.PRODUCT:
        edge = ProductEdge(stage)
        edge.dns["health"] = {"name": question, "type": "A"} if question else {}
        edge.dns["policy"] = "leastOutstanding"
        edge.write_members(members)
        await edge.start()
        await stage.until("edgekeeper is ready", edge.ready, timeout_s=20.0)
    else:
        name = question or "a.root-servers.net."
        await PlainEdge(stage, members=0, policy="leastOutstanding", health_name=name, health_type="A", must_resolve=False).serve(members)
    await asyncio.sleep(3.0)
    figures = {"wrongly_up": 0.0, "wrongly_down": 0.0, "failed": 0.0, "asked": 0.0}
    await _step(stage, "all upstreams live", 0, figures)
    for number, setting in enumerate(("hardened", "stock")):
        await stage.tell(f"upstream-{setting}", "mode drop")
        stage.note(f"the upstream of the {setting} resolvers is dead")
        await asyncio.sleep(SETTLE_S + 4.0)
        await _step(stage, f"{setting} upstream dead", 2 * number + 1, figures)
        await stage.tell(f"upstream-{setting}", "mode normal")
        stage.note("it is back")
        await asyncio.sleep(SETTLE_S + 10.0)
        await _step(stage, "back", 2 * number + 2, figures)
    return Measured(figures)


async def _step(stage: Stage, title: str, serial: int, figures: dict[str, float]) -> None:
    truth = await clients_say(stage, tuple(k.address for k in KINDS_ALL), serial)
    ups = await states(stage)
    failed = 0
    _, failed = await served_by(stage, serial, asked=60)
    wrong_up = [k.name for k in KINDS_ALL if ups is not None and ups.get(k.name) and not truth[k.address]]
    wrong_down = [k.name for k in KINDS_ALL if ups is not None and not ups.get(k.name) and truth[k.address]]
    live = sum(truth.values())
    said = "; ".join(([f"wrongly up: {', '.join(wrong_up)}"] if wrong_up else []) + ([f"wrongly down: {', '.join(wrong_down)}"] if wrong_down else []))
    stage.note(f"{title}: clients say {live} of {len(KINDS_ALL)} live; {failed} of 60 questions failed{'; ' + said if said else ''}")
    figures["wrongly_up"] += len(wrong_up)
    figures["wrongly_down"] += len(wrong_down)
    figures["failed"] += failed
    figures["asked"] += 60


async def states(stage: Stage) -> dict[str, bool] | None:
    """Which members the product says are up, by name; None behind a plain engine."""
    if stage.side is Side.PLAIN:
        return None
    status = await ProductEdge.status_of(stage)
    return {b["name"]: b["state"] == "up" for b in status.get("roles", {}).get("dns", {}).get("backends", [])}


AS_CLIENTS_SAY = (
    Promise("wrongly_up", "members up that clients cannot use", 0, "members"),
    Promise("wrongly_down", "members down that clients can use", 0, "members"),
    Promise("failed", "questions failed once the dead members are out", 0),
)
KINDS = Drill(
    "dns-member-kinds",
    "unbound, BIND, dnsmasq and pdns-recursor, stock and hardened, go down and up exactly as their clients would say",
    (
        Case("default-question", "two upstreams die in turn; health asks a.root-servers.net.", kinds(None), AS_CLIENTS_SAY, headline="failed", members=12),
        Case(
            "own-question",
            "two upstreams die in turn; health asks a name of one's own with a short TTL",
            kinds("up.health.example."),
            AS_CLIENTS_SAY,
            headline="failed",
            members=12,
        ),
    ),
    needs=NEEDS,
)
