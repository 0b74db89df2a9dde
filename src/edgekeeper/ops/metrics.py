"""Every metric in one table: its name, kind, labels and help. The reference is generated from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.process_collector import ProcessCollector


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as Prometheus sees it; counters get ``_total`` at their end."""

    name: str
    kind: Literal["counter", "gauge"]
    labels: tuple[str, ...]
    help: str


METRICS: Final = (
    Metric("edgekeeper_dns_backend_up", "gauge", ("backend",), "1 when dnsdist holds the backend up, else 0; removed backends disappear."),
    Metric("edgekeeper_dns_backends", "gauge", (), "Backends that dnsdist holds."),
    Metric("edgekeeper_dns_engine_restarts", "counter", ("reason",), "Engine restarts by reason: membership, zones, certificates, listeners, other, exit."),
    Metric("edgekeeper_dns_renders", "counter", ("result",), "Renderings by result: ok, unchanged, invalid, check_failed."),
    Metric("edgekeeper_dns_cache_flushes", "counter", (), "Cache flushes because a zone's serial changed, or by command."),
    Metric("edgekeeper_dns_engine_up", "gauge", (), "1 when the engine runs and its status is fresh, else 0."),
    Metric("edgekeeper_dns_membership_age_seconds", "gauge", (), "Seconds since the source of the members was read in full."),
    Metric("edgekeeper_dns_alarms", "gauge", (), "Alarms that are raised now."),
    Metric("edgekeeper_lb_engine_up", "gauge", (), "1 when HAProxy runs and its status is fresh, else 0."),
    Metric("edgekeeper_lb_server_up", "gauge", ("server",), "0 when HAProxy holds the server DOWN or in MAINT, else 1; by backend/server."),
    Metric("edgekeeper_lb_server_sessions", "gauge", ("server",), "Sessions on the server in the newest worker; on a DOWN server these are pinned clients."),
    Metric("edgekeeper_lb_server_down_seconds", "gauge", ("server",), "Seconds that the server has been DOWN or in MAINT; servers that are up are absent."),
    Metric("edgekeeper_lb_old_workers", "gauge", (), "Workers of before a reload that still hold connections."),
    Metric("edgekeeper_lb_cuts_per_minute", "gauge", (), "Connections that HAProxy or edgekeeper ended in the last minute because their server was dead."),
    Metric("edgekeeper_lb_engine_restarts", "counter", ("reason",), "Engine restarts by reason: membership, listeners, other, exit."),
    Metric("edgekeeper_lb_renders", "counter", ("result",), "Renderings by result: ok, unchanged, invalid, check_failed."),
    Metric("edgekeeper_lb_alarms", "gauge", (), "Alarms that are raised now."),
    Metric("edgekeeper_vip_master", "gauge", ("vip",), "1 when this node holds the VIP by the kernel, else 0."),
    Metric("edgekeeper_vip_priority", "gauge", ("vip",), "Priority that keepalived told last."),
    Metric("edgekeeper_vip_transitions", "counter", ("vip", "to"), "Changes of a VIP's state on this node, by the state that it changed to."),
    Metric("edgekeeper_vip_reloads", "counter", ("result",), "Renderings by result: ok, unchanged, invalid, check_failed; each that is ok reloads keepalived."),
    Metric("edgekeeper_vip_engine_up", "gauge", (), "1 when keepalived runs, else 0."),
    Metric("edgekeeper_vip_engine_restarts", "counter", ("reason",), "Engine restarts by reason: peers, vips, other, exit."),
    Metric("edgekeeper_vip_lease_age_seconds", "gauge", ("vip",), "Where a cluster moves the VIPs: since the owner's Lease was renewed."),
    Metric("edgekeeper_vip_alarms", "gauge", (), "Alarms that are raised now."),
    Metric("edgekeeper_watch_up", "gauge", ("watch",), "1 when the probe answered well last, 0 when it failed; absent before the first answer."),
    Metric("edgekeeper_watch_blind", "gauge", ("watch",), "1 when the log of the watched service cannot be followed, else 0."),
    Metric("edgekeeper_watch_wanted", "gauge", ("watch",), "1 while a cure is wanted and held back, else 0."),
    Metric("edgekeeper_watch_events", "counter", ("watch", "event"), "What the watch decided, by event: watch.armed, watch.cured, watch.suppressed..."),
    Metric("edgekeeper_watch_recovered_seconds", "gauge", ("watch",), "Seconds from the first sign to the first good answer of the last cure that helped."),
    Metric("edgekeeper_watch_alarms", "gauge", (), "Alarms that are raised now."),
    Metric("edgekeeper_expose_leads", "gauge", (), "1 while this process is the one that writes, else 0."),
    Metric("edgekeeper_expose_wanted", "gauge", (), "Hosts that the sources want."),
    Metric("edgekeeper_expose_managed", "gauge", (), "Services in the mesh that are this owner's."),
    Metric("edgekeeper_expose_held", "gauge", (), "Hosts for which something would have to be done and is held back."),
    Metric("edgekeeper_expose_drift", "gauge", (), "Writes of the last pass that did not succeed."),
    Metric("edgekeeper_expose_refused_deletions", "counter", (), "Passes in which deletions were refused for safety."),
    Metric("edgekeeper_expose_writes", "counter", ("kind", "result"), "Writes to the mesh by kind (create, update, delete...) and result (done, taken...)."),
    Metric("edgekeeper_expose_api_calls", "counter", ("method", "status"), "Calls of the mesh's API by method and status; 429 is its rate limit, 0 no answer."),
    Metric("edgekeeper_expose_last_success_timestamp_seconds", "gauge", (), "Unix time of the last pass that saw the mesh."),
    Metric("edgekeeper_expose_unproved", "gauge", (), "Published hosts that did not answer from outside when they were asked last."),
    Metric("edgekeeper_expose_alarms", "gauge", (), "Alarms that are raised now."),
    Metric(
        "edgekeeper_probe_up", "gauge", ("target", "conn"), "1 while the target answers, 0 in an outage; absent before the first answer. conn is fresh or warm."
    ),
    Metric(
        "edgekeeper_probe_asked", "gauge", ("target", "conn"), "Questions since the start; of these, edgekeeper_probe_unanswered went without a good answer."
    ),
    Metric("edgekeeper_probe_unanswered", "gauge", ("target", "conn"), "Questions without a good answer in time."),
    Metric(
        "edgekeeper_probe_slow",
        "gauge",
        ("target", "conn"),
        "Good answers that took over 0.9 s: a black hole shorter than the retransmission of a SYN hides in them.",
    ),
    Metric("edgekeeper_probe_outages", "gauge", ("target", "conn"), "Outages since the start, the one under way included."),
    Metric("edgekeeper_probe_outage_seconds_min", "gauge", ("target", "conn"), "Seconds of outage since the start, at least."),
    Metric("edgekeeper_probe_outage_seconds_max", "gauge", ("target", "conn"), "Seconds of outage since the start, at most; one under way counts up to now."),
    Metric(
        "edgekeeper_probe_answer_seconds",
        "gauge",
        ("target", "conn", "quantile"),
        "How long good answers took, to 4 %: quantiles 0.5, 0.95, 0.99 since the start.",
    ),
    Metric("edgekeeper_probe_unrecorded", "gauge", (), "Records of questions that could not be written since the start."),
    Metric(
        "edgekeeper_probe_uncounted",
        "gauge",
        (),
        "Questions since the start that do not count, or were not asked, because this process was held up or had no descriptor left.",
    ),
    Metric("edgekeeper_probe_alarms", "gauge", (), "Alarms that are raised now."),
    Metric("edgekeeper_journal_lost", "gauge", (), "Journal entries that could not be written since the start."),
)


class Metrics:
    """The values of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._counters = {m.name: Counter(m.name, m.help, m.labels, registry=self.registry) for m in METRICS if m.kind == "counter"}
        self._gauges = {m.name: Gauge(m.name, m.help, m.labels, registry=self.registry) for m in METRICS if m.kind == "gauge"}

    def count(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Add one to a counter."""
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc()

    def set(self, name: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Set a gauge."""
        gauge = self._gauges[name]
        (gauge.labels(**labels) if labels else gauge).set(value)

    def replace(self, name: str, label: str, values: Mapping[str, float]) -> None:
        """Set a gauge with one label for exactly these; all others disappear."""
        gauge = self._gauges[name]
        gauge.clear()
        for key, value in values.items():
            gauge.labels(**{label: key}).set(value)

    def clear(self, name: str) -> None:
        """Forget all values of a gauge with labels: what is set next is all that there is."""
        self._gauges[name].clear()

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)
