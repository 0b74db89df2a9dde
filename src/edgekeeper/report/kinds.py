"""What is read out of a log: a request that somebody made, or a mark: something that happened. Pure.

Times are seconds since 1970 as the clock of the source had them; nothing here corrects a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Request:
    """One request (or session) and how it ended.

    ``took_s`` is how long the client waited, so that what it saw, it saw at ``start + took_s``. ``status`` is what the client got; 0 where
    the protocol has none (a TCP session: then ``bad`` says whether it was cut off). ``router`` is the route, host or frontend that
    answered, "" where the line does not say. ``client`` is the address that tells the class of the client, ``masked`` how many failed
    attempts the proxy hid from it, ``number`` a running number of the writing process (a hole in it is a lost line). ``cause`` is a
    short word for what the line says of the reason: "no endpoint", "no connection", "the application", "killed: server down"...
    """

    start: float
    took_s: float
    status: int
    router: str = ""
    client: str = ""
    bad: bool | None = None
    masked: int = 0
    number: int | None = None
    cause: str = ""
    tls: bool | None = None


class Kind(StrEnum):
    """What a mark says happened. ``object`` and ``data`` of the mark are told beside each."""

    BGP_DOWN = "bgp.down"  # object: peer; data: reason
    BGP_UP = "bgp.up"  # object: peer
    BGP_WITHDRAWN = "bgp.withdrawn"  # object: peer; a soft reset or the withdrawal of routes
    BGP_NOTIFY_SENT = "bgp.notify_sent"  # object: peer; data: code
    BGP_NOTIFY_HEARD = "bgp.notify_heard"  # object: peer; data: code
    VRRP_STATE = "vrrp.state"  # object: instance; data: state (MASTER, BACKUP, FAULT, STOP), priority
    VRRP_ZERO_SENT = "vrrp.zero_sent"  # object: instance
    VRRP_ZERO_HEARD = "vrrp.zero_heard"  # object: instance
    VRRP_TIMEOUT = "vrrp.timeout"  # object: instance: no advertisement was heard in time
    CORDONED = "node.cordoned"  # object: node
    UNCORDONED = "node.uncordoned"  # object: node
    DRAINED = "node.drained"  # object: node
    NODE_STATE = "node.state"  # object: node; data: state (NotReady, Ready, Rebooted...)
    EVICTING = "pod.evicting"  # object: namespace/pod (namespace may be empty); data: node where known
    EVICTED = "pod.evicted"  # object: namespace/pod
    DELETED = "pod.deleted"  # object: namespace/pod: an eviction that was bypassed
    EVICTION_BLOCKED = "pod.eviction_blocked"  # object: namespace/pod; data: again_s, why
    POD = "pod.event"  # object: namespace/pod; data: reason (Killing, Scheduled, FailedAttachVolume, Pulled, Started, Ready...), message
    DB_SWITCHOVER = "db.switchover"  # object: namespace/cluster; data: from, to
    DB_FAILOVER = "db.failover"  # object: namespace/cluster; data: from, to
    DB_PROMOTED = "db.promoted"  # object: namespace/cluster; data: to
    FINGERPRINT = "watch.fingerprint"  # object: service or watch; a line that a watchdog looks for; data: text
    WATCH_RESTARTED = "watch.restarted"  # object: service; data: took_s where known
    WATCH_ACTING = "watch.acting"  # object: service; the decision to restart
    WATCH_SUPPRESSED = "watch.suppressed"  # object: service; data: cooldown_s, since_s where known
    WATCH_PROBE = "watch.probe"  # object: target; data: ok, round, rounds, error
    WATCH_PROVEN = "watch.proven"  # object: service; it answers again
    SERVER_DOWN = "lb.server_down"  # object: backend/server; data: reason
    SERVER_UP = "lb.server_up"  # object: backend/server
    NO_SERVER = "lb.no_server"  # object: backend
    PINNED = "lb.pinned"  # object: backend/server; data: client, age_s, down: a session that was seen
    LEASE_AGE = "node.lease_age"  # object: node; data: age_s
    CLOCK = "clock.shared"  # object: an id that another source has too; data: side ("sent", "received", "logged"), until (end of the span)
    ROLL = "roll.step"  # object: node or step; data: step, state, roll
    OUTAGE = (
        "outage.told"  # object: who was asked; data: min_s, max_s (None: no end was seen), bad, asked: measured and told by somebody else; at: first failure
    )
    NOTE = "note"  # anything else that is worth a mark on the axis


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened, told by ``source`` at ``at`` on its clock (None: the line has no time, only an order).

    The stamp may be early by as much as ``stamp_s``: a log that writes whole seconds has 1.0. ``node`` is the machine that it happened
    on, where the line or the name of the source tells; ``what`` is a short sentence for people.
    """

    at: float | None
    kind: Kind
    object: str
    what: str = ""
    source: str = ""
    node: str = ""
    stamp_s: float = 0.0
    data: Mapping[str, str | float | bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skip:
    """A line that could not be read, by a reason of ``REASONS``."""

    reason: str


TRUNCATED = "truncated"
NOT_TEXT = "not text"
TOO_LONG = "longer than 1 MiB"
NOT_THIS_FORMAT = "not of this format"
MISSING_FIELD = "a field is missing"
WRONG_TYPE = "a field has the wrong type"
NO_TIME = "no time, or an impossible one"
ORIGIN_STATUS = "status not told (a failure of the proxy itself, before Traefik 2.10.5)"
TORN_COMPRESSION = "the compressed file ends too early or is damaged"
REASONS = (TRUNCATED, NOT_TEXT, TOO_LONG, NOT_THIS_FORMAT, MISSING_FIELD, WRONG_TYPE, NO_TIME, ORIGIN_STATUS, TORN_COMPRESSION)
"""Why a line was not read: a closed list, so that counts of several files can be added."""
