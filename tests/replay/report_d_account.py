"""What the published account of one measured roll says, and what is chosen here so that every sentence of it holds at once.

It counts ten budgets that allow no disruption and names eleven workloads: here ``tr-pg`` has none. It says "restart, 40 to 80 s" and "about
two minutes" of the same outage: both are in the logs, the one in the proxies' own, the other in the minutes in which the access log has
too few requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

LOCAL = timezone(timedelta(hours=2))
ZONE = "Europe/Berlin"
DAY = datetime(2026, 9, 7, tzinfo=UTC).timestamp()
BEHIND_S = {"edge-1": 183.0, "edge-2": 182.6}
"""What must be added to a stamp of a proxy."""


def at(text: str) -> float:
    """Seconds since 1970 of ``04:55:10`` (UTC) on the day."""
    hours, minutes, seconds = text.split(":")
    return DAY + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


WINDOW = (at("04:48:00"), at("05:12:00"))
BASELINE = (at("04:24:00"), at("04:48:00"))
REQUESTS = 3391
BAD = {
    "gitea": (503, 56),
    "home-assistant": (503, 36),
    "shelly-manager": (502, 25),
    "immich": (503, 19),
    "openbao": (503, 13),
    "grafana": (503, 10),
    "music-assistant": (503, 9),
    "crowdsec-lapi": (503, 7),
    "wordpress": (503, 6),
    "woodpecker": (503, 4),
}
LAN = {"04:55": 128, "04:56": 109, "04:57": 127, "04:58": 126, "05:00": 186, "05:01": 210, "05:02": 233, "05:03": 198, "05:06": 97, "05:07": 135}
"""Published minutes; of 05:00 to 05:03 and 05:06 to 05:07 only the least and the most are."""
PUBLIC = {"04:56": 2, "04:57": 0, "05:06": 2, "05:07": 2}
"""Where it was not four."""

SPACE = {"gitea": "git", "home-assistant": "home", "shelly-manager": "home", "immich": "media", "openbao": "vault", "grafana": "watch"}
SPACE |= {"music-assistant": "media", "crowdsec-lapi": "guard", "wordpress": "web", "woodpecker": "git", "files": "media", "docs": "web", "status": "web"}


def router(app: str) -> str:
    """The name that the proxy gives to the route of an app."""
    return f"websecure-{SPACE[app]}-{app}-{app}-home-example@kubernetes"


@dataclass(frozen=True, slots=True)
class Node:
    """What happened to a node, in UTC."""

    name: str
    address: str
    cordoned: float
    evicting: float
    drained: float
    down: float
    up: float
    uncordoned: float


NODES = (
    Node("n1", "192.0.2.11", at("04:52:00"), at("04:52:06"), at("04:54:50"), at("04:55:10"), at("04:56:00"), at("04:57:40")),
    Node("n2", "192.0.2.12", at("04:52:01"), at("04:58:20"), at("05:00:05"), at("05:00:15"), at("05:01:02"), at("05:02:40")),
    Node("n3", "192.0.2.13", at("04:58:15"), at("05:03:10"), at("05:05:05"), at("05:05:20"), at("05:06:11"), at("05:07:55")),
)
"""Each next one is cordoned before its turn. The router's session with each: down for 50, 47 and 51 s."""

DATABASES = ("data/ha-pg-1", "data/tr-pg-1", "data/wp-pg-1", "data/ak-pg-1", "data/im-pg-1", "data/pprl-pg-2")
TWICE = (*DATABASES, "data/influxdb-0", "mail/protonmail-bridge", "watch/prometheus-main-0", "web/wordpress-mariadb-0")
"""In the drain logs of n1 and of n2. protonmail-bridge has another pod name in each."""
BRIDGE = ("protonmail-bridge-6d5f7c9b8d-x2k4q", "protonmail-bridge-6d5f7c9b8d-9wz7l")
BUDGETS = frozenset(
    {"data/ha-pg-1", "data/wp-pg-1", "data/ak-pg-1", "data/im-pg-1", "data/pprl-pg-2", "git/gitea-0", "data/influxdb-0"}
    | {"files/syncthing-0", *(f"mail/{pod}" for pod in BRIDGE), "git/woodpecker-server-0"}
)
"""Pods of the ten budgets that allow no disruption: their eviction was refused, then bypassed."""
ONCE = {
    "n1": ("git/gitea-0", "home/home-assistant-0", "home/shelly-manager-7f9c5d6b84-kq2vz", "vault/openbao-0", "files/syncthing-0"),
    "n2": ("watch/grafana-5b8d9f7c66-tm4xd", "media/immich-server-6c7d8f9b55-w8n2r", "guard/crowdsec-lapi-84d6b7f9c5-zz8vk"),
    "n3": ("media/music-assistant-0", "git/woodpecker-server-0", "web/wordpress-7d5c9b6f48-l2x9s", "vault/openbao-2"),
}

ISLANDS = (
    ("gitea", "04:52:20.4", 85.0, 56),
    ("home-assistant", "04:52:31.0", 46.0, 20),
    ("home-assistant", "04:58:45.2", 41.0, 16),
    ("shelly-manager", "04:52:41.3", 62.0, 25),
    ("immich", "04:52:49.5", 44.0, 10),
    ("immich", "04:58:52.1", 38.0, 9),
    ("openbao", "04:53:01.0", 76.0, 13),
    ("grafana", "04:58:37.7", 42.0, 10),
    ("music-assistant", "05:03:31.9", 37.0, 9),
    ("crowdsec-lapi", "04:59:05.3", 35.0, 7),
    ("wordpress", "04:53:10.8", 33.0, 3),
    ("wordpress", "04:59:15.6", 34.0, 3),
    ("woodpecker", "05:03:42.2", 32.0, 4),
)
"""App, first bad answer, seconds to the last one, how many: 30 to 90 s of them per app per drain."""


@dataclass(frozen=True, slots=True)
class Dark:
    """One time in which a proxy had no route: true times, and what its watchdog did."""

    edge: str
    seen: float
    restarted: float | None
    ended: float


DARK = (
    Dark("edge-1", at("04:56:24.3"), at("04:56:26.1"), at("04:57:05.3")),
    Dark("edge-2", at("04:56:24.5"), at("04:56:26.2"), at("04:57:43.9")),
    Dark("edge-1", at("05:01:04.1"), None, at("05:01:20.0")),
    Dark("edge-2", at("05:01:04.2"), None, at("05:01:24.0")),
    Dark("edge-1", at("05:06:57.0"), at("05:06:58.8"), at("05:07:07.2")),
    Dark("edge-2", at("05:06:27.0"), at("05:06:28.7"), at("05:06:37.3")),
)
PEER = (at("04:55:11"), at("04:56:24"))
"""The mesh peer on n1 left, and was back as a new identity: 73 s."""
SEALED = (at("04:53:40"), at("05:28:40"))
CERTIFICATE = (at("13:10:07"), at("13:30:12"))
"""On the first member, on the one that has only IPv6."""
ROUNDS = {"edge-1": 2.0, "edge-2": 28.0}
"""Seconds of the minute at which a proxy's watchdog asks its two hosts."""
HOSTS = ("status", "docs")

KILLS = ((at("14:00:10.9"), at("14:00:13.1")), (at("14:15:20.9"), at("14:15:23.0")), (at("14:20:30.9"), at("14:24:00.5")))
"""The experiment of the afternoon: when a routing peer was killed, and when the proxy had a route again."""
AFTERNOON = (at("13:55:00"), at("14:30:00"))


def iso(moment: float, *, zone: timezone = UTC, digits: str = "milliseconds") -> str:
    return datetime.fromtimestamp(round(moment, 6), zone).isoformat(timespec=digits).replace("+00:00", "Z")
