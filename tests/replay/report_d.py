"""One measured roll, re-created from its published tables: log files as its sources would have written them.

All three nodes were drained, patched and rebooted between 06:52 and 07:08 local time (see ``report_d_account``). Three time bases are mixed
as in the account: the drain logs and the router's in local time (the router's without a zone), the access log in UTC, the proxies' in local
time on clocks that run three minutes behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from tests.replay.report_d_account import (
    AFTERNOON,
    BAD,
    BASELINE,
    BEHIND_S,
    BRIDGE,
    BUDGETS,
    CERTIFICATE,
    DARK,
    DAY,
    HOSTS,
    ISLANDS,
    KILLS,
    LAN,
    LOCAL,
    NODES,
    ONCE,
    PEER,
    PUBLIC,
    REQUESTS,
    ROUNDS,
    SEALED,
    SPACE,
    TWICE,
    WINDOW,
    ZONE,
    Node,
    at,
    iso,
    router,
)


def files() -> dict[str, bytes]:
    """Every file by its name in the folder."""
    texts = {"traefik.jsonl": _traefik(), "gw-frr.log": _frr(), "events.jsonl": _events(), "notes.jsonl": _notes()}
    for number, node in enumerate(NODES):
        texts[f"drain-{node.name}.log"] = _drain(number, node)
    for edge in BEHIND_S:
        texts[f"{edge}-netbird.log"] = _netbird(edge)
        texts[f"{edge}-watchdog.log"] = _watchdog(edge)
        texts[f"{edge}-probe.jsonl"] = _probes(edge)
    texts["afternoon/edge-1-probe.jsonl"] = _afternoon_probes()
    texts["afternoon/edge-1-watchdog.log"] = _afternoon_watchdog()
    return {name: "".join(f"{line}\n" for line in lines).encode() for name, lines in texts.items()}


def write(folder: Path) -> None:
    """Write them all."""
    for name, content in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def node_of(name: str) -> str:
    """The machine whose clock wrote a file."""
    base = name.rpartition("/")[2]
    return base[:6] if base.startswith("edge-") else "gw" if base.startswith("gw-") else "ingress" if base == "traefik.jsonl" else "admin"


def zone_of(name: str) -> str:
    """How the file's times without a zone are to be read."""
    return ZONE if name.endswith(("-frr.log", "-watchdog.log")) else ""


def _syslog(edge: str, moment: float, tag: str, text: str) -> str:
    stamp = datetime.fromtimestamp(moment - BEHIND_S[edge], LOCAL).strftime("%b %d %H:%M:%S")
    return f"{stamp} {edge} {tag}: {text}"


def _dark(edge: str, moment: float) -> bool:
    return any(d.edge == edge and d.seen <= moment < d.ended for d in DARK)


class _Chance:
    """A small generator of its own, so that the files are the same with every Python."""

    def __init__(self) -> None:
        self.state = 20260907

    def __call__(self, below: int) -> int:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % below


def _traefik() -> Iterable[str]:
    chance = _Chance()
    asked: list[tuple[float, float, int, str, str, str]] = []  # begin, took, status, app, client, path
    taken: dict[int, int] = {}

    def ask(begin: float, took: float, status: int, app: str, path: str = "/") -> None:
        asked.append((begin, took, status, app, f"198.51.100.{20 + chance(40)}", path))
        taken[int(begin // 60)] = taken.get(int(begin // 60), 0) + 1

    for app, first, lasted, count in ISLANDS:
        begin, status = at(first), BAD[app][0]
        slow = 3.004 if status == 502 else 0.0002
        for number in range(count):
            moment = begin + lasted * number / (count - 1)
            if int(moment // 60) != int((moment + slow) // 60):  # the minute of its begin and of its end are the same
                moment -= slow
            ask(moment, slow, status, app)
        ask(begin - 1.4, 0.021, 200, app)
        if app != "openbao":  # nobody came back to it before the window's end
            ask(begin + lasted + slow + 1.1, 0.025, 200, app)
    quiet = [app for app in SPACE if app != "openbao"]
    minutes = range(int(BASELINE[0] // 60), int(WINDOW[1] // 60))
    for minute in minutes:
        inside = minute * 60 >= WINDOW[0]
        due = _lan(minute) if inside else 124 + chance(9)
        for number in range(due - taken.get(minute, 0)):
            begin = minute * 60 + 0.3 + number * 59.0 / due
            app = quiet[chance(len(quiet))]
            if any(app == a and at(f) - 3 <= begin <= at(f) + lasted + 8 for a, f, lasted, _ in ISLANDS):
                app = "files"
            asked.append((begin, 0.002 + chance(180) / 1000, (200, 200, 200, 200, 304, 404)[chance(6)], app, f"198.51.100.{20 + chance(40)}", "/"))
    asked.extend(_public())
    asked.sort(key=lambda r: r[0] + r[1])  # a line is written when the request has ended
    for number, (begin, took, status, app, client, path) in enumerate(asked, start=103109):
        yield json.dumps(_line(number, begin, took, status, app, client, path), separators=(",", ":"))


def _public() -> Iterable[tuple[float, float, int, str, str, str]]:
    for edge in BEHIND_S:
        for sent, done, ok, host, number in _rounds(edge, BASELINE[0], WINDOW[1]):
            if ok:
                yield sent + 0.018, (done - sent) - 0.030, 200, host, "127.0.0.1", f"/?kp={edge}-{number}"


def _rounds(edge: str, begin: float, end: float) -> Iterable[tuple[float, float, bool, str, int]]:
    """The once-a-minute questions of a proxy: sent, done, answered, host, number; true times."""
    number = 0
    for minute in range(int(begin // 60), int(end // 60)):
        for place, host in enumerate(HOSTS):
            number += 1
            sent = minute * 60 + ROUNDS[edge] + place * 0.5
            ok = not _dark(edge, sent)
            yield sent, sent + (0.052 + number % 7 * 0.004 if ok else 1.0), ok, host, number


def _lan(minute: int) -> int:
    stamp = datetime.fromtimestamp(minute * 60, UTC).strftime("%H:%M")
    if stamp in LAN:
        return LAN[stamp]
    total = REQUESTS - sum(PUBLIC.values()) - 4 * (24 - len(PUBLIC)) - sum(LAN.values())
    others = 24 - len(LAN)
    return total // others + (1 if (minute * 60 - WINDOW[0]) // 60 < total % others else 0)


def _line(number: int, begin: float, took: float, status: int, app: str, client: str, path: str) -> dict[str, object]:
    begun = iso(begin, digits="microseconds")[:-1] + "000Z"
    line: dict[str, object] = {
        "ClientAddr": f"{client}:{40000 + number % 9000}",
        "ClientHost": client,
        "ClientPort": str(40000 + number % 9000),
        "ClientUsername": "-",
        "DownstreamContentSize": 20,
        "DownstreamStatus": status,
        "Duration": round(took * 1e9),
        "OriginStatus": status,
        "RequestCount": number,
        "RequestHost": f"{app}.home.example",
        "RequestMethod": "GET",
        "RequestPath": path,
        "RequestProtocol": "HTTP/2.0",
        "RequestScheme": "https",
        "RetryAttempts": 0,
        "RouterName": router(app),
        "ServiceName": f"{SPACE[app]}-{app}-http@kubernetes",
        "StartUTC": begun,
        "entryPointName": "websecure",
        "level": "info",
        "msg": "",
        "time": iso(begin + took, digits="seconds"),
    }
    if status != 503:  # where no endpoint is left there is no server to name
        line |= {"ServiceURL": "http://192.0.2.77:8080", "ServiceAddr": "192.0.2.77:8080"}
    return line


def _drain(number: int, node: Node) -> Iterable[str]:
    """A drain whose lines were stamped as they came, without and then with the word that bypasses evictions."""
    pods = [*(() if node.name == "n3" else TWICE), *ONCE[node.name]]
    pods = [f"mail/{BRIDGE[number]}" if pod == "mail/protonmail-bridge" else pod for pod in pods]
    lines = [(node.cordoned, f"node/{node.name} cordoned")]
    lines.append((node.evicting, f"Warning: ignoring DaemonSet-managed Pods: kube-system/agent-w5r8{number}, mesh/router-h6kq{number}"))
    refused = "(will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget."
    for place, pod in enumerate(pods):  # kubectl asks for all of them at once, and tells of each when it is gone
        space, _, name = pod.partition("/")
        asked, gone = node.evicting + 0.1 + place * 0.1, node.evicting + 11 + place * 2.4
        lines.append((asked, f"evicting pod {pod}"))
        if pod in BUDGETS:
            lines.append((asked + 0.04, f'error when evicting pods/"{name}" -n "{space}" {refused}'))
        lines.append((gone, f"pod/{name} deleted" if pod in BUDGETS else f"pod/{name} evicted"))
    lines.sort()
    lines.append((node.drained, f"node/{node.name} drained"))
    lines.append((node.uncordoned, f"node/{node.name} uncordoned"))
    return [f"{iso(moment, zone=LOCAL)} {text}" for moment, text in lines]


def _frr() -> Iterable[str]:
    def stamp(moment: float) -> str:
        return datetime.fromtimestamp(moment, LOCAL).strftime("%Y/%m/%d %H:%M:%S.") + f"{round(moment % 1 * 1000):03d}"

    for node in NODES:
        peer = f"neighbor {node.address}({node.name}) in vrf default"
        yield f"{stamp(node.down + 0.412)} BGP: [HZN6M-XRM1G] %NOTIFICATION: received from neighbor {node.address} 6/2 (Cease/Administrative Shutdown) 0 bytes "
        yield f"{stamp(node.down + 0.413)} BGP: [PXVXG-TFNNT] %ADJCHANGE: {peer} Down BGP Notification received"
        yield f"{stamp(node.up + 0.413)} BGP: [N9HHH-F8H1M] %ADJCHANGE: {peer} Up"
        yield f"{stamp(node.up + 0.9)} BGP: [M59KS-A3ZXZ] bgp_update_receive: rcvd End-of-RIB for IPv4 Unicast from {node.address} in vrf default"


def _event(moment: float, kind: str, space: str, name: str, reason: str, message: str, host: str = "") -> str:
    stamp = iso(moment, digits="seconds")
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.{reason.lower()}{int(moment) % 100000:x}", "namespace": space or "default", "creationTimestamp": stamp},
            "involvedObject": {"kind": kind, "namespace": space, "name": name},
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet" if host else "node-controller", "host": host},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "type": "Normal",
            "eventTime": None,
        },
        separators=(",", ":"),
    )


def _events() -> Iterable[str]:
    rows = []
    for node in NODES:
        rows.append((node.down + 40, _event(node.down + 40, "Node", "", node.name, "NodeNotReady", f"Node {node.name} status is now: NodeNotReady")))
        rows.append((node.up + 9, _event(node.up + 9, "Node", "", node.name, "NodeReady", f"Node {node.name} status is now: NodeReady", node.name)))
    rows.extend(
        (when, _event(when, "Pod", "vault", "openbao-0", reason, text, "n2"))
        for when, reason, text in ((SEALED[0], "Unhealthy", "Readiness probe failed: sealed true"), (SEALED[1], "Unsealed", "unsealed by hand"))
    )
    return [line for _, line in sorted(rows)]


def _note(moment: float, thing: str, why: str) -> str:
    data = {"schema": 1, "ts": iso(moment), "mono": 0.0, "node": "admin", "role": "note", "event": "note", "object": thing, "decision": "act", "why": why}
    return json.dumps(data | {"data": {}}, separators=(",", ":"))


def _notes() -> Iterable[str]:
    """What the account tells of other sources, as lines of a journal."""
    yield _note(PEER[0], "router-n1", "the mesh peer on n1 left")
    yield _note(PEER[1], "router-n1", "the mesh peer on n1 is back as a new identity")
    yield _note(CERTIFICATE[0], "git.home.example", "certificate arrived at edge-1")
    yield _note(CERTIFICATE[1], "git.home.example", "certificate arrived at edge-2, which has only IPv6")


def _netbird(edge: str) -> Iterable[str]:
    for dark in (d for d in DARK if d.edge == edge):
        for number in range(14):
            yield _netbird_line(edge, dark.seen + number * 0.05, "WARN", 126, "couldn't fetch peer state: Rm9yZXhhbXBsZUE=")
        yield _netbird_line(edge, dark.seen + 0.9, "DEBG", 109, "couldn't fetch peer state Rm9yZXhhbXBsZUE=: peer not found")
        chosen = "New chosen route is d1route0 with peer Rm9yZXhhbXBsZUI= with score 1.000000 for network [status.home.example]"
        yield _netbird_line(edge, dark.ended, "INFO", 250, chosen)


def _netbird_line(edge: str, moment: float, level: str, line: int, text: str) -> str:
    return f"{iso(moment - BEHIND_S[edge], zone=LOCAL)} {level} client/internal/routemanager/client/client.go:{line}: {text}"


FLOOD, SLOW = "netbird-proxy-flood-watchdog[811]", "netbird-proxy-watchdog[902]"
SEEN = 'fingerprint "couldn\'t fetch peer state" seen, '


def _watchdog(edge: str) -> Iterable[str]:
    last = 0.0
    for dark in (d for d in DARK if d.edge == edge):
        if dark.restarted is None:
            since = int(dark.seen - BEHIND_S[edge]) - int(last - BEHIND_S[edge])
            yield _syslog(edge, dark.seen, FLOOD, f"{SEEN}restart suppressed: cooldown 600s, last restart {since}s ago")
            continue
        yield _syslog(edge, dark.seen, FLOOD, f"{SEEN}restarting netbird-proxy")
        yield _syslog(edge, dark.restarted, FLOOD, "restarted netbird-proxy")
        last = dark.restarted


def _probe(edge: str, sent: float, done: float, ok: bool, target: str, number: int) -> str:
    wall = sent - BEHIND_S[edge]
    sample = {"schema": 1, "ts": round(wall, 6), "target": target, "conn": "fresh", "sent": round(sent - DAY, 6), "done": round(done - DAY, 6), "ok": ok}
    sample |= {"slow": False, "error": None if ok else "no answer within 1 s", "connect_ms": None, "tls_ms": None, "first_byte_ms": None}
    return json.dumps(sample | {"answered_by": None, "id": f"{edge}-{number}"})


def _probes(edge: str) -> Iterable[str]:
    for sent, done, ok, host, number in _rounds(edge, BASELINE[0], WINDOW[1]):
        yield _probe(edge, sent, done, ok, f"https://{host}.home.example/", number)


def _afternoon_probes() -> Iterable[str]:
    for number in range(int((AFTERNOON[1] - AFTERNOON[0]) / 2)):
        sent = AFTERNOON[0] + number * 2.0
        down = any(begin <= sent < end for begin, end in KILLS)
        yield _probe("edge-1", sent, sent + (1.0 if down else 0.06), not down, "https://status.home.example/", number)


def _afternoon_watchdog() -> Iterable[str]:
    for begin, _ in KILLS[:2]:
        yield _syslog("edge-1", begin + 0.2, FLOOD, f"{SEEN}restarting netbird-proxy")
        yield _syslog("edge-1", begin + 2.0, FLOOD, "restarted netbird-proxy")
    third, ended = KILLS[2]
    since = int(third - BEHIND_S["edge-1"]) - int(KILLS[1][0] + 2.0 - BEHIND_S["edge-1"])
    yield _syslog("edge-1", third + 0.2, FLOOD, f"{SEEN}restart suppressed: cooldown 600s, last restart {since}s ago")
    for number in range(3):
        failed = f"probe https://status.home.example round {number + 1}/3 failed: http_code=000"
        yield _syslog("edge-1", ended - 140 + number * 60, SLOW, failed)
    yield _syslog("edge-1", ended - 18, SLOW, "restarting netbird-proxy")
    yield _syslog("edge-1", ended - 2, SLOW, "restarted netbird-proxy")
