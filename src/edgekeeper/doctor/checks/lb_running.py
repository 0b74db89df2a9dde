"""A running HAProxy beside its file and its limits (HAP012, HAP013), and beside the cluster (HAP009, HAP010). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from edgekeeper.doctor.check import NO_LINTER, Check, Needs, Page
from edgekeeper.doctor.checks.lb_words import subject
from edgekeeper.doctor.facts import HaproxyFacts, HaproxyRuntime, Unknown
from edgekeeper.doctor.kind import kind_of
from edgekeeper.engines.haproxy.cfg_values import Config
from edgekeeper.model.finding import Finding, Place, Severity
from edgekeeper.model.time import format_duration

NEAR = 0.8
_JUST_STARTED_S = 1.0

HAP009_PAGE = Page(
    what="The servers of a control-plane backend are others than the cluster's API servers (the endpoints of the service `default/kubernetes`).",
    why="A missing one is capacity that you think you have; a left-over one is an address that may belong to somebody else by now.",
    fix="Make the list of servers what the cluster says, or let `edgekeeper lb run` follow the cluster.",
    others=NO_LINTER,
)

HAP010_PAGE = Page(
    what="One load balancer host in front of the API, with no virtual IP and no second host.",
    why="When it is rebooted or dies, no kubelet renews its lease and no controller acts: the whole cluster stands still, with all of its machines well.",
    fix="A second host with the same configuration, and a virtual IP between the two (`edgekeeper vip`).",
    others=NO_LINTER,
)

HAP012_PAGE = Page(
    what="The file was written after the running process was started (`show info`: start time), so it has never been loaded.",
    why="The fix that somebody wrote is not in force, and whoever reads the file believes that it is. The next restart brings it in, at a bad moment.",
    fix="`haproxy -c -f FILE`, then reload. `systemctl reload haproxy` does both.",
    others=NO_LINTER,
)

HAP013_PAGE = Page(
    what="More than 80 % of a limit is used: `CurrConns` of `Maxconn`, or the sessions of a listener or a server of its own `maxconn`.",
    why="At the limit new clients wait in the kernel's queue or in HAProxy's, and look like an outage of what stands behind. Pinned sessions count too.",
    fix="Raise `maxconn` (and the limit of open files with it), after a look at who holds the sessions: `edgekeeper lb sessions`.",
    others=NO_LINTER,
)


def older_than_file(facts: HaproxyFacts, _config: Config) -> Iterator[Finding]:
    """HAP012."""
    runtime = facts.runtime
    if not isinstance(runtime, HaproxyRuntime):
        return
    info = runtime.info
    started = float(info.start_time) if info.start_time else facts.now - info.uptime_s if info.uptime_s is not None and facts.now else None
    if started is None:
        return
    for file, written in facts.mtimes.items():
        if written > started + _JUST_STARTED_S:
            yield Finding(
                id="HAP012",
                severity=Severity.WARN,
                object=f"process {info.pid}" if info.pid else "process",
                what=f"runs since before {file} was written",
                evidence=f"the file is {format_duration(float(round(written - started)))} newer than the process",
                why="what stands in the file is not in force",
                fix=f"haproxy -c -f {file}, then reload",
                place=Place(file, 0),
            )


def near_limit(facts: HaproxyFacts, _config: Config) -> Iterator[Finding]:
    """HAP013."""
    runtime = facts.runtime
    if not isinstance(runtime, HaproxyRuntime):
        return
    rows = [("process", runtime.info.curr_conns, runtime.info.max_conn)]
    rows += [(f"frontend {row.name}", row.scur, row.slim) for row in runtime.stats.frontends]
    rows += [(f"server {row.backend}/{row.server}", row.scur, row.slim) for row in runtime.stats.servers]
    for name, used, limit in rows:
        if used is not None and limit and used > NEAR * limit:
            yield Finding(
                id="HAP013",
                severity=Severity.WARN,
                object=name,
                what=f"{used} of at most {limit} sessions ({100 * used // limit} %)",
                evidence=f"scur {used}, limit {limit}",
                why="at the limit new clients wait in a queue, and it looks like an outage of what stands behind",
                fix="see who holds them (edgekeeper lb sessions), then raise maxconn",
            )


def other_servers(facts: HaproxyFacts, config: Config) -> Iterator[Finding]:
    """HAP009."""
    real = facts.inventory.api_servers
    if isinstance(real, Unknown):
        return
    for backend in config.backends():
        if not backend.servers or not kind_of(config, backend, facts.api_backends).control_plane:
            continue
        listed = {server.address.host for server in backend.servers}
        missing, extra = sorted(real - listed), sorted(listed - real)
        if missing or extra:
            yield Finding(
                id="HAP009",
                severity=Severity.HIGH,
                object=subject(backend),
                what="other servers than the cluster's API servers",
                evidence="; ".join([*(f"missing: {', '.join(missing)}" for _ in missing[:1]), *(f"left over: {', '.join(extra)}" for _ in extra[:1])]),
                why="capacity that is not there, or clients sent to a stale address",
                fix=f"{backend.servers[0].place.text()}: list exactly {', '.join(sorted(real))}",
                place=backend.servers[0].place,
            )


def one_balancer(facts: HaproxyFacts, _config: Config) -> Iterator[Finding]:
    """HAP010."""
    hosts = facts.inventory.balancers
    if not isinstance(hosts, Unknown) and len(hosts) == 1 and not facts.inventory.has_vip:
        yield Finding(
            id="HAP010",
            severity=Severity.HIGH,
            object=f"host {hosts[0]}",
            what="the only load balancer in front of the API",
            evidence="one host, no virtual IP",
            why="its reboot is an outage of the whole control plane",
            fix="a second host and a virtual IP (edgekeeper vip)",
        )


CHECKS = (
    Check("HAP009", Severity.HIGH, "The server list is not the control plane", Needs.INVENTORY, HAP009_PAGE, other_servers),
    Check("HAP010", Severity.HIGH, "One load balancer host and no virtual IP", Needs.INVENTORY, HAP010_PAGE, one_balancer),
    Check("HAP012", Severity.WARN, "The running process is older than its file", Needs.RUNTIME, HAP012_PAGE, older_than_file),
    Check("HAP013", Severity.WARN, "Near a limit of sessions", Needs.RUNTIME, HAP013_PAGE, near_limit),
)
