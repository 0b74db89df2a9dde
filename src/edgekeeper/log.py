"""Logs: JSON lines, or text for people, about a closed list of events.

Every line names an event of ``Event``, so that an alert can match a word that is kept. What came
from outside is escaped, and what looks like a secret, or was handed to ``withhold``, is left out.

A JSON line: ``{"ts", "level", "event", "why", "node", "data"}`` and, for lines of a library,
``logger``. ``ts`` is UTC to the millisecond.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import IO, Any, Final, Self

from typing_extensions import override

from edgekeeper.model.text import printable

DEBUG, INFO, WARNING, ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR
WITHHELD: Final = "(withheld)"

_logger = logging.getLogger("edgekeeper")
_secrets: set[str] = set()
_SECRET_WORDS = frozenset({"secret", "token", "password", "passwd", "passphrase", "authorization", "credential", "credentials", "cookie"})
_SECRET_NAMES = frozenset({"key", "keys", "api_key", "console_key", "private_key", "access_key", "x_api_key"})
_SHORTEST_SECRET = 8
_MAX_TEXT = 4096
_MAX_DEPTH = 8


class Event(StrEnum):
    """Every event there is; the text beside each is what the reference prints."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        """An event whose value is the word in the log, with its sentence beside it."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    ENGINE_STARTED = "engine.started", "An engine process was started."
    ENGINE_PROVED = "engine.proved", "The started process runs the wanted configuration and answers."
    ENGINE_NOT_PROVED = "engine.not_proved", "The started process could not be shown to run the wanted configuration; the one before comes back."
    ENGINE_EXITED = "engine.exited", "An engine ended without being told to; it is started again after a pause that grows."
    ENGINE_ADOPTED = "engine.adopted", "A running engine of a former supervisor was taken over without a restart."
    ENGINE_STOPPED = "engine.stopped", "An engine was stopped on purpose."
    ENGINE_LOG = "engine.log", "A line of the engine's own log, passed through."
    CONFIG_RENDERED = "config.rendered", "A configuration was rendered and is asked about."
    CONFIG_REFUSED = "config.refused", "A configuration was refused; the running one and its files stay."
    CONFIG_UNCHANGED = "config.unchanged", "Rendering gave the same bytes; nothing was done."
    CONFIG_ACCEPTED = "config.accepted", "The engine's own validator accepted a configuration."
    CONFIG_LIVE = "config.live", "A change was brought into the running engine and read back."
    CONFIG_RELOADED = "config.reloaded", "The running engine read its files again, and was shown to run them."
    CONFIG_RESTART = "config.restart", "A change needs a new engine process."
    CONFIG_ROLLED_BACK = "config.rolled_back", "The previous generation is in force again."
    MEMBERS_CHANGED = "members.changed", "The members behind the edge are others than before."
    MEMBERS_HELD = "members.held", "Many members were lost at once; the loss is held back until a second look confirms it."
    MEMBERS_KEPT = "members.kept", "The source names no members; the last full set stays."
    MEMBERS_UNREADABLE = "members.unreadable", "The source cannot be read; the last full set stays and its age is told."
    MEMBER_DRAINED = "member.drained", "A member was taken out of service for maintenance."
    MEMBER_UNDRAINED = "member.undrained", "A drained member is back in service."
    MEMBER_IDENTITY_MISMATCH = "member.identity_mismatch", "Another machine than the named one answers behind a member's address."
    HEALTH_QUESTION_FAILED = "health.question_failed", "All members answer DNS but fail the health question; they stay in service."
    CERTIFICATE_CHANGED = "certificate.changed", "A changed certificate was checked and is in use."
    CERTIFICATE_REFUSED = "certificate.refused", "A changed certificate is not usable; the one before stays."
    ZONES_CHANGED = "zones.changed", "The set of authoritative zones, or a serial among them, changed."
    CACHE_FLUSHED = "cache.flushed", "Cached answers were thrown away."
    SIGNAL_RECEIVED = "signal.received", "A signal reached the supervisor."
    HANDOVER_DONE = "handover.done", "The supervisor ends and leaves the engine running for the next one."
    VIP_MASTER_CHANGED = "vip.master_changed", "A VIP has come to this node, or left it; where a cluster moves the VIPs: it has another owner."
    VIP_HANDED_OVER = "vip.handed_over", "A VIP was drained, undrained or handed to a peer on purpose, or could not be."
    VIP_COVERED = "vip.covered", "A VIP that left its interface is answered from the loopback interface until another node has told the network."
    VIP_UNCOVERED = "vip.uncovered", "A cover, or an address that a dead keepalived left behind, was taken away."
    VIP_COVER_STUCK = "vip.cover_stuck", "A cover could not be taken away."
    VIP_YIELDED = "vip.yielded", "A node that was frozen gives up a VIP that a peer owns since."
    VIP_ANNOUNCED = "vip.announced", "An owner whose VIP was contested tells the network that it stays the owner."
    VIP_HEALTH_CHANGED = "vip.health_changed", "The service behind a VIP has failed or recovered by edgekeeper's own look."
    VIP_EVENT_DROPPED = "vip.event_dropped", "Somebody who wants to know of changed owners does not read them; the oldest are dropped until it does."
    VIP_FIFO_READING = "vip.fifo_reading", "keepalived's transitions are read from its FIFO."
    VIP_FIFO_LINE_SKIPPED = "vip.fifo_line_skipped", "Lines of keepalived's FIFO were not understood."
    VIP_STATE_LOST = "vip.state_lost", "What keepalived tells cannot be written into vip-state.json; it is kept in memory until it can."
    VIP_STATE_RECOVERED = "vip.state_recovered", "The file vip-state.json is up to date again."
    OPS_LISTENING = "ops.listening", "Health, status and metrics are served."
    ALARM_RAISED = "alarm.raised", "Something needs a person."
    ALARM_CLEARED = "alarm.cleared", "What needed a person is well again."
    JOURNAL_LOST = "journal.lost", "The journal cannot be written; entries are counted as lost until it can."
    JOURNAL_RECOVERED = "journal.recovered", "The journal can be written again."
    BUDGET_DAMAGED = "budget.damaged", "The store of budgets was unreadable; every budget counts as spent for one window."
    LB_SESSIONS_FREED = "lb.sessions_freed", "Sessions on a server that is DOWN or in MAINT were ended, so that their clients connect anew."
    LB_SERVER_MARKED = "lb.server_marked", "A server that is a black hole to the probe is put into MAINT and its sessions are ended."
    LB_SERVER_RELEASED = "lb.server_released", "A marked server answers again and is taken out of MAINT."
    LB_MARK_ADOPTED = "lb.mark_adopted", "A mark of an earlier guard is taken over."
    LB_MARK_FORGOTTEN = "lb.mark_forgotten", "A mark is not there any more: never set, lost in a reload, or undone by somebody else."
    LB_HELD = "lb.held", "An automatic act on a load balancer was held back."
    LB_GUARD_BLIND = "lb.guard_blind", "HAProxy, or the way of the probe, cannot be seen; nothing is done."
    LB_GUARD_SEES = "lb.guard_sees", "HAProxy can be seen again."
    LB_GUARD_STARTED = "lb.guard_started", "A guard watches over a HAProxy that is not edgekeeper's."
    LB_GUARD_ENDED = "lb.guard_ended", "A guard ends; its marks stay."
    PROBE_DOWN = "probe.down", "A target does not answer; how long it may last is not known yet."
    PROBE_OUTAGE = "probe.outage", "A target answers again, or the meter ended; how long it did not, with its bounds."
    PROBE_UNRECORDED = "probe.unrecorded", "Records of questions cannot be written; asking goes on."
    WATCH_STARTED = "watch.started", "A watch begins."
    WATCH_ARMED = "watch.armed", "A line of the log matched a fingerprint, now or before a restart of edgekeeper; the probe is asked whether it is true."
    WATCH_DISARMED = "watch.disarmed", "The probe answers well, and no line comes any more: there was no wedge, or it healed by itself."
    WATCH_CONFIRMED = "watch.confirmed", "The probe failed often enough in a row, or a line came that nothing has to confirm: a cure is wanted."
    WATCH_SUPPRESSED = "watch.suppressed", "A wanted cure is held back by guard, turn, budget, start grace or shadow; it stays wanted."
    WATCH_CANCELLED = "watch.cancelled", "A wanted cure is not needed any more: the probe answers well, or somebody else has started the service."
    WATCH_CURED = "watch.cured", "A step of a cure is applied."
    WATCH_PROVED = "watch.proved", "The probe answers again after a cure."
    WATCH_NOT_PROVED = "watch.not_proved", "A cure did not help, or could not be carried out."
    WATCH_BLIND = "watch.blind", "The log of a watched service cannot be followed; only its probe tells of a wedge."
    WATCH_SEES = "watch.sees", "The log of a watched service is followed."
    EXPOSE_PASS = "expose.pass", "A pass is over: how many hosts are wanted, and what was created, updated, deleted and held."
    EXPOSE_FAILED = "expose.failed", "A pass could not see the sources or the mesh; nothing was changed."
    EXPOSE_CREATED = "expose.created", "A host was published."
    EXPOSE_UPDATED = "expose.updated", "A published host's service was changed, repaired, or is wanted again."
    EXPOSE_ADOPTED = "expose.adopted", "A service that somebody else had made is edgekeeper's now."
    EXPOSE_RELINQUISHED = "expose.relinquished", "A service is not edgekeeper's any more and stays as it is."
    EXPOSE_DISABLED = "expose.disabled", "A host that nothing wants any more was switched off; it is deleted later."
    EXPOSE_DELETED = "expose.deleted", "A service that nothing wants any more was deleted."
    EXPOSE_NOT_DONE = "expose.not_done", "A write to the mesh did not succeed; the next pass looks anew."
    EXPOSE_REFUSED = "expose.refused", "Deletions were refused for safety."
    EXPOSE_REPAIRED = "expose.repaired", "The mesh's network, resource or router was made or put right."
    EXPOSE_FORGOTTEN = "expose.forgotten", "What earlier passes have left cannot be read; absences are counted anew, so that deletions come later."
    EXPOSE_PROVED = "expose.proved", "A published host answers from outside."
    EXPOSE_NOT_PROVED = "expose.not_proved", "A published host does not answer from outside."
    EXPOSE_LEADS = "expose.leads", "This process is the one that writes, or is it no more."
    EXPOSE_UNTOLD = "expose.untold", "Events or status annotations cannot be written onto objects; publishing goes on without."
    EXPOSE_TOLD = "expose.told", "Events or status annotations can be written again."
    LEASE_GAINED = "lease.gained", "This process holds a Lease of the cluster, and does what only one may do."
    LEASE_LOST = "lease.lost", "The Lease was lost or could not be renewed in time; what only one may do is stopped here."
    LEASE_RELEASED = "lease.released", "The Lease was given up in order; the next one leads at once."
    LEASE_UNREACHABLE = "lease.unreachable", "The Lease cannot be read or written."
    INTERNAL_ERROR = "internal.error", "A part of edgekeeper failed in a way that nobody foresaw; it is tried again."
    LIBRARY = "library", "A line that a library logged."


def withhold(secret: str) -> None:
    """Leave this value out of every log line from now on, wherever it turns up (8 characters or more)."""
    if len(secret) >= _SHORTEST_SECRET:
        _secrets.add(secret)


def redact(value: object, name: str = "") -> Any:
    """The value as JSON can carry it, without what is secret by its field's name or by ``withhold``."""
    return _redact(value, name, 0)


def _redact(value: object, name: str, depth: int) -> Any:
    if name and value is not None and not isinstance(value, bool) and _is_secret_name(name):
        return WITHHELD
    if depth > _MAX_DEPTH:
        return "..."
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return _without_secrets(value[:_MAX_TEXT])
        case Mapping():
            return {_without_secrets(str(k)): _redact(v, str(k), depth + 1) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_redact(v, "", depth + 1) for v in value]
        case _:
            return _without_secrets(str(value)[:_MAX_TEXT])


def _is_secret_name(name: str) -> bool:
    flat = name.lower().replace("-", "_")
    if flat.endswith(("_file", "_env")):  # where a secret is, not what it is
        return False
    return flat in _SECRET_NAMES or bool(_SECRET_WORDS.intersection(re.split(r"[^a-z0-9]+", flat.replace("_", " "))))


def _without_secrets(text: str) -> str:
    for secret in _secrets:
        if secret in text:
            text = text.replace(secret, WITHHELD)
    return text


def emit(event: Event, why: str, /, *, level: int = INFO, **data: object) -> None:
    """Log one event: ``why`` is the reason as a sentence, ``data`` what a machine wants beside it."""
    if _logger.isEnabledFor(level):
        _logger.log(level, "%s", why, extra={"event": event, "data": data})


class _Formatter(logging.Formatter):
    """What JSON and text have in common: the parts of a line."""

    def __init__(self, node: str = "", *, debug: bool = False) -> None:
        super().__init__()
        self.node = node
        self.debug = debug

    def parts(self, record: logging.LogRecord) -> dict[str, Any]:
        """The line's fields, redacted; ``why`` is on one line only once it is escaped or encoded."""
        event: Event = getattr(record, "event", Event.LIBRARY)
        data: dict[str, Any] = dict(getattr(record, "data", {}))
        why = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            why = f"{why}: {type(error).__name__}: {error}"
            if self.debug:
                data["traceback"] = self.formatException(record.exc_info)
        out: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": str(event),
            "why": redact(why),
        }
        if self.node:
            out["node"] = self.node
        if event is Event.LIBRARY:
            out["logger"] = record.name
        if data:
            out["data"] = redact(data)
        return out


class JsonFormatter(_Formatter):
    """One JSON object a line, ASCII only: nothing in it can reach a terminal."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        return json.dumps(self.parts(record), separators=(",", ":"), allow_nan=False)


class TextFormatter(_Formatter):
    """For people: time, level, event, the sentence, then ``name=value``; everything escaped."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end (a traceback, with --debug, follows on lines of its own)."""
        parts = self.parts(record)
        data: dict[str, Any] = parts.get("data", {})
        traceback = data.pop("traceback", "") if self.debug else ""
        pairs = "".join(f" {printable(k)}={_value(v)}" for k, v in data.items())
        name = parts.get("logger", parts["event"])
        line = f"{parts['ts'][11:23]} {parts['level'].upper():<7} {printable(name):<20} {printable(parts['why'])}{pairs}"
        return line + "".join("\n  " + printable(row) for row in traceback.splitlines())


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = printable(text)
    return json.dumps(shown, ensure_ascii=False) if isinstance(value, str) and (" " in shown or not shown) else shown


def setup(log_format: str = "json", *, node: str = "", debug: bool = False, stream: IO[str] | None = None) -> None:
    """Send all logs to ``stream`` (standard error when not said); calling it again replaces the former set-up.

    ``debug`` also lets through what is below the level info, and tracebacks. A log that cannot be
    written (a full disk, a closed pipe) never stops the program.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(TextFormatter(node, debug=debug) if log_format == "text" else JsonFormatter(node, debug=debug))
    root = logging.getLogger()
    for former in root.handlers[:]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(WARNING)
    _logger.setLevel(DEBUG if debug else INFO)
    logging.raiseExceptions = False
