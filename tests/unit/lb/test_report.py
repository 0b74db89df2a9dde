"""What ``/status`` says of the role: a person who reads one line must learn what is not as it should be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tests.fakes.haproxy import topology

from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.haproxy.look import Picture
from edgekeeper.engines.haproxy.stats import Info, ServerStat, Stats, Worker
from edgekeeper.lb.report import STALE_S, Report, Reported
from edgekeeper.model.backend import Member
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ports import Cost
from edgekeeper.supervise.decide import Refused, Rendered, State

KUBE = topology({"kind": "kube-apiserver", "name": "api"}, members=(Member("cp1", "192.0.2.1", 6443), Member("", "192.0.2.2", 6443)))


class Role:
    """As much of the role as a report reads."""

    def __init__(self, *, running: bool = True, refused: str | None = None, **alarms: str) -> None:
        state = State(running=running, refused=Refused(Rendered("d2", Cost.LIVE), refused, 30.0) if refused else None)
        actor = SimpleNamespace(crew=SimpleNamespace(serving=None), running_intent=lambda: KUBE if running else None)
        members = (Member("cp1", "192.0.2.1", 6443), Member("", "192.0.2.2", 6443))
        self.now = 100.0
        self.clock = SimpleNamespace(monotonic=lambda: self.now, wall=lambda: 1.0)
        self.alarms = SimpleNamespace(raised=alarms)
        self.metrics = Metrics()
        self.supervisor = SimpleNamespace(actor=actor, state=state, why="it ended", last_change={}, adopted=False)
        self.inputs = SimpleNamespace(followers={"api": SimpleNamespace(why="said", read_at=5.0, members=members)}, patiences=SimpleNamespace(known={}))
        self.sweeper = SimpleNamespace(cuts_per_minute=4)
        self.canary = Verdict(Health.OK, "it cuts")
        self.built = SimpleNamespace(features=SimpleNamespace(text="3.2.26"))


def picture(*rows: tuple[str, str, str, int]) -> Picture:
    servers = tuple(ServerStat(backend, server, status, scur=sessions, weight=100, lastchg=7) for backend, server, status, sessions in rows)
    return Picture(Info("3.2", 7), Stats(servers=servers), (Worker(7, current=True), Worker(5, current=False, reloads=1)), None, Admin("/x"))


ROWS = (
    ("api", "cp1", "DOWN", 0),
    ("api", "192.0.2.2_6443", "UP", 2),
    ("api-patient", "cp1", "UP", 0),
    ("api-patient", "192.0.2.2_6443", "UP", 3),
    ("api-open", "cp1", "no check", 1),
)


def made(**said: Any) -> tuple[Role, Report]:
    role = Role(**said)
    report = Report(cast("Reported", role))
    report.looked(picture(*ROWS), 99.0)
    return role, report


def test_servers_are_told_by_their_people_s_names_with_the_sessions_of_all_backends() -> None:
    _, report = made()
    told = report.status().details
    (service,) = told["services"]
    assert [(s["name"], s["address"], s["state"], s["sessions"]) for s in service["servers"]] == [
        ("192.0.2.2:6443", "192.0.2.2:6443", "UP", 5),
        ("cp1", "192.0.2.1:6443", "DOWN", 1),
    ]
    assert service["detection_s"] == {"min": 1.5, "max": 2.5}
    assert [w["current"] for w in told["engine"]["workers"]] == [True, False]
    assert told["self_test"] == {"verdict": "ok", "why": "it cuts"}


def test_the_one_line_says_what_is_up_refused_and_alarming() -> None:
    assert made()[1].status().verdict.why == "api: 1 of 2 up"
    _, report = made(refused="the port is taken", membership="it cannot be read")
    assert report.status().verdict.why == (
        "api: 1 of 2 up; a change is refused, what ran before still runs: the port is taken; 1 alarm(s), membership: it cannot be read"
    )


def test_what_is_old_or_was_never_seen_is_not_ready() -> None:
    role, report = made()
    assert report.status().ready.ok
    role.now += STALE_S + 1
    assert report.status().ready.why == "HAProxy's status is 5.0 s old"
    report.looked(None, role.now)
    assert report.status().ready.why == "HAProxy has not answered its status yet"
    assert not made(running=False)[1].status().ready.ok
    assert made(running=False)[1].status().details["services"] == []


def test_gauges_say_nothing_of_what_is_not_seen() -> None:
    role, report = made()
    report.measure()
    text = role.metrics.text().decode()
    assert 'edgekeeper_lb_server_up{server="api/cp1"} 0.0' in text
    assert 'edgekeeper_lb_server_sessions{server="api-patient/192.0.2.2_6443"} 3.0' in text
    assert "edgekeeper_lb_engine_up 1.0" in text
    role.now += 60
    report.measure()
    text = role.metrics.text().decode()
    assert "edgekeeper_lb_engine_up 0.0" in text
    assert 'server="api/cp1"' not in text
