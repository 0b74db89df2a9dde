"""What a running HAProxy says of itself: ``show stat``, ``show info``, ``show proc``, ``show servers state``. Pure.

Read tolerantly: columns are found by their names, so that they may be missing, be others or stand in another
order (2.6 has 128 of them, 3.2 has 207); a line that cannot be read is skipped and counted, never paired
with the wrong name, and never an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_ADDRESS_PORT = re.compile(r"\[?([^\[\]]*)\]?:(\+?-?\d+)\Z")
_UPTIME = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?\Z")


@dataclass(frozen=True, slots=True)
class ServerStat:
    """One server of a backend as ``show stat`` tells it. Counters that HAProxy leaves empty are None."""

    backend: str
    server: str
    status: str
    check: str = ""
    """How its last check ended: ``L7OK``, ``L7TOUT``, ``L4CON``... (a ``* `` before it, a check in progress, is left out)."""
    check_desc: str = ""
    check_code: int | None = None
    scur: int = 0
    """Sessions on it now."""
    slim: int | None = None
    """Its ``maxconn``; None when it has none."""
    lastchg: int | None = None
    """Seconds since it went UP or DOWN the last time."""
    weight: int | None = None
    address: str = ""
    """``host:port``; empty for a socket of level user, which is not told."""
    backup: bool = False
    active: bool = False
    qcur: int | None = None
    rate: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    mode: str = ""

    @property
    def down(self) -> bool:
        """Whether it gets no sessions because it is DOWN or in MAINT (``NOLB``, ``DRAIN``, ``UP 1/3``, ``no check`` are not)."""
        return _is(self.status, "DOWN") or self.maint

    @property
    def maint(self) -> bool:
        """Whether a person or a tracked server put it in maintenance."""
        return _is(self.status, "MAINT")

    @property
    def unresolved(self) -> bool:
        """Whether it is in MAINT only because DNS does not name it (any more): that says nothing about the sessions that it serves."""
        return self.maint and "resolution" in self.status

    @property
    def usable(self) -> bool:
        """Whether new sessions go to it: not DOWN, MAINT, DRAIN, NOLB or of weight 0. An unknown word counts as not usable.

        ``weight 0`` in the configuration leaves the status at ``UP`` (measured on 2.6, 3.0 and 3.2), and HAProxy sends nobody there.
        """
        return self.weight != 0 and (_is(self.status, "UP") or self.status == "no check")

    @property
    def name(self) -> str:
        """``backend/server``."""
        return f"{self.backend}/{self.server}"


@dataclass(frozen=True, slots=True)
class ProxyStat:
    """A FRONTEND or BACKEND row of ``show stat``."""

    name: str
    status: str
    mode: str = ""
    scur: int = 0
    slim: int | None = None
    rate: int | None = None
    req_tot: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    act: int | None = None
    """Usable servers, in a BACKEND row."""
    bck: int | None = None
    """Usable backup servers, in a BACKEND row."""
    algo: str = ""
    lastchg: int | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """One full ``show stat``; ``skipped`` counts the lines that could not be read."""

    servers: tuple[ServerStat, ...] = ()
    frontends: tuple[ProxyStat, ...] = ()
    backends: tuple[ProxyStat, ...] = ()
    skipped: int = 0

    def server(self, backend: str, server: str) -> ServerStat | None:
        """The row of one server, None where this HAProxy has none of that name."""
        return next((s for s in self.servers if s.server == server and s.backend == backend), None)

    def of(self, backend: str) -> tuple[ServerStat, ...]:
        """The servers of one backend, in its order."""
        return tuple(s for s in self.servers if s.backend == backend)


@dataclass(frozen=True, slots=True)
class Info:
    """``show info``: which process this is, and how full. A number that was not told is None (0 for the pid)."""

    version: str = ""
    pid: int = 0
    uptime_s: int | None = None
    curr_conns: int | None = None
    max_conn: int | None = None
    description: str = ""
    node: str = ""
    start_time: int | None = None
    """Unix time of the start."""
    stopping: bool = False
    """Whether it is an old worker that only finishes what it has."""
    raw: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process of a master; the others than ``current`` are left over from reloads and run no health checks."""

    pid: int
    current: bool
    reloads: int = 0
    uptime_s: int | None = None
    version: str = ""


@dataclass(frozen=True, slots=True)
class ServerState:
    """A line of ``show servers state``; ``raw`` has all of its fields by their names, as HAProxy wrote them."""

    backend: str
    server: str
    address: str
    port: int
    op_state: int
    """0 stopped, 1 starting, 2 running, 3 stopping."""
    admin_state: int
    """Bits: 1 and 4 (forced) or 2 (inherited) maintenance, 8 and 0x10 drain, 0x20 address not resolved."""
    weight: int = 0
    raw: Mapping[str, str] = field(default_factory=dict)


def parse_stat(text: str) -> Stats:
    """The answer to ``show stat``. Values with quotes are read as CSV has them; nothing is ever raised."""
    columns: dict[str, int] = {}
    servers: list[ServerStat] = []
    frontends: list[ProxyStat] = []
    backends: list[ProxyStat] = []
    skipped = 0
    for raw in text.split("\n"):
        line = raw.strip()
        if not line:
            continue
        if line.startswith("#"):
            columns = _columns(line[1:].strip().rstrip(",").split(","))
            continue
        cells = line.split(",") if '"' not in line else _quoted(line)
        row = _Row(columns, cells)
        backend, server, status = row.text("pxname"), row.text("svname"), row.text("status")
        if not backend or not server or not status:
            skipped += 1
        elif server == "FRONTEND":
            frontends.append(_proxy(row, backend, status))
        elif server == "BACKEND":
            backends.append(_proxy(row, backend, status))
        elif row.text("type") in ("", "2"):  # 3 is a listener of its own (option socket-stats)
            servers.append(_server(row, backend, server, status))
    return Stats(tuple(servers), tuple(frontends), tuple(backends), skipped)


class _Row:
    """A line by the names of its columns; what the line is too short for, or the header lacks, is empty."""

    __slots__ = ("_cells", "_columns")

    def __init__(self, columns: Mapping[str, int], cells: Sequence[str]) -> None:
        self._columns, self._cells = columns, cells

    def text(self, name: str) -> str:
        place = self._columns.get(name, -1)
        return self._cells[place].strip() if 0 <= place < len(self._cells) else ""

    def number(self, name: str) -> int | None:
        return _number(self.text(name))


def _columns(names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, name in enumerate(names):
        found.setdefault(name.strip(), place)
    return found


def _server(row: _Row, backend: str, server: str, status: str) -> ServerStat:
    return ServerStat(
        backend,
        server,
        status,
        check=row.text("check_status").removeprefix("* "),
        check_desc=row.text("check_desc") or row.text("last_chk"),
        check_code=row.number("check_code"),
        scur=row.number("scur") or 0,
        slim=row.number("slim"),
        lastchg=row.number("lastchg"),
        weight=row.number("weight"),
        address=row.text("addr"),
        backup=row.number("bck") == 1,
        active=row.number("act") == 1,
        qcur=row.number("qcur"),
        rate=row.number("rate"),
        bytes_in=row.number("bin"),
        bytes_out=row.number("bout"),
        mode=row.text("mode"),
    )


def _proxy(row: _Row, name: str, status: str) -> ProxyStat:
    return ProxyStat(
        name,
        status,
        mode=row.text("mode"),
        scur=row.number("scur") or 0,
        slim=row.number("slim"),
        rate=row.number("rate"),
        req_tot=row.number("req_tot"),
        bytes_in=row.number("bin"),
        bytes_out=row.number("bout"),
        act=row.number("act"),
        bck=row.number("bck"),
        algo=row.text("algo"),
        lastchg=row.number("lastchg"),
    )


def _quoted(line: str) -> list[str]:
    """The cells of a line in which some are quoted; ``""`` inside quotes is one quote."""
    cells: list[str] = []
    place = 0
    while place <= len(line):
        if line.startswith('"', place):
            end = place + 1
            while (end := line.find('"', end)) >= 0 and line.startswith('""', end):
                end += 2
            if end < 0:
                return [*cells, line[place + 1 :]]
            cells.append(line[place + 1 : end].replace('""', '"'))
            comma = line.find(",", end)
        else:
            comma = line.find(",", place)
            cells.append(line[place:comma] if comma >= 0 else line[place:])
        if comma < 0:
            break
        place = comma + 1
    return cells


def parse_info(text: str) -> Info:
    """The answer to ``show info``."""
    raw: dict[str, str] = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if colon and name.strip():
            raw.setdefault(name.strip(), value.strip())

    def number(name: str) -> int | None:
        return _number(raw.get(name, ""))

    return Info(
        version=raw.get("Version", ""),
        pid=number("Pid") or 0,
        uptime_s=number("Uptime_sec"),
        curr_conns=number("CurrConns"),
        max_conn=number("Maxconn"),
        description=raw.get("description", raw.get("Description", "")),
        node=raw.get("node", raw.get("Node", "")),
        start_time=number("Start_time_sec"),
        stopping=raw.get("Stopping") == "1",
        raw=raw,
    )


def parse_proc(text: str) -> tuple[Worker, ...]:
    """The workers that ``show proc`` on a master socket names, the current ones first; master and programs are left out."""
    found: list[Worker] = []
    section = ""
    for line in text.split("\n"):
        if line.startswith("#"):
            section = line[1:].strip().lower()
            continue
        words = re.sub(r"\[[^\]]*\]", " ", line).split()  # the master's "[failed: 0]"
        if len(words) < 3 or words[1] != "worker" or (pid := _number(words[0])) is None or pid <= 0 or "program" in section:
            continue
        place = next((i for i, word in enumerate(words) if i > 1 and re.fullmatch(r"\d+d\d+h\d+m\d+s", word)), len(words))
        reloads = _number(words[place - 1]) if place > 2 else None
        found.append(
            Worker(
                pid,
                current="old" not in section,
                reloads=reloads or 0,
                uptime_s=parse_uptime(words[place]) if place < len(words) else None,
                version=words[place + 1] if place + 1 < len(words) else "",
            )
        )
    return tuple(sorted(found, key=lambda worker: not worker.current))


def parse_uptime(text: str) -> int | None:
    """Seconds of HAProxy's short times: ``3d4h``, ``1m5s``, ``59m54s``, ``0d00h00m01s``; None for anything else."""
    match = _UPTIME.match(text)
    if match is None or not text:
        return None
    days, hours, minutes, seconds = (int(part or 0) if len(part or "") < 12 else 0 for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


_STATE_HEAD: Final = (
    "be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status "
    "srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl "
    "srv_check_port srv_check_addr srv_agent_addr srv_agent_port"
)
STATE_FIELDS: Final = tuple(_STATE_HEAD.split())
"""The fields of a line of version 1, in the order in which HAProxy 2.6 to 3.2 writes and reads them."""


def parse_servers_state(text: str) -> tuple[ServerState, ...]:
    """The answer to ``show servers state``, or a server-state-file."""
    names: Sequence[str] = ()
    found: list[ServerState] = []
    for line in text.split("\n"):
        if line.startswith("#"):
            names = line[1:].split()
            continue
        raw = dict(zip(names, line.split(), strict=False))
        port, op_state, admin_state = (_number(raw.get(name, "")) for name in ("srv_port", "srv_op_state", "srv_admin_state"))
        if "be_name" not in raw or "srv_name" not in raw or port is None or op_state is None or admin_state is None:
            continue
        address = raw.get("srv_addr", "-")
        found.append(
            ServerState(
                raw["be_name"],
                raw["srv_name"],
                "" if address == "-" else address,
                port,
                op_state,
                admin_state,
                _number(raw.get("srv_uweight", "")) or 0,
                raw,
            )
        )
    return tuple(found)


def format_servers_state(rows: Iterable[ServerState]) -> str:
    """A server-state-file of these rows that HAProxy loads again; a row without all of its fields is left out."""
    lines = ["1", "# " + " ".join(STATE_FIELDS)]
    lines += [" ".join(row.raw[name] for name in STATE_FIELDS) for row in rows if all(row.raw.get(name) for name in STATE_FIELDS)]
    return "\n".join(lines) + "\n"


def split_address(text: str) -> tuple[str, int | None]:
    """Host and port of ``192.0.2.1:80``, ``[2001:db8::1]:80`` or HAProxy's ``2001:db8::1:80``; the port is None where it is no plain number."""
    match = _ADDRESS_PORT.match(text)
    if match is None:
        return text, None
    return match[1], int(match[2]) if match[2].isdigit() and len(match[2]) <= 5 else None


def _is(status: str, word: str) -> bool:
    return status == word or status.startswith((word + " ", word + "("))


def _number(text: str) -> int | None:
    """A whole number as HAProxy writes it. No signs, no underscores, no digits of other scripts, nothing endless."""
    negative = text.startswith("-")
    digits = text[1:] if negative else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > 20:
        return None
    return -int(digits) if negative else int(digits)
