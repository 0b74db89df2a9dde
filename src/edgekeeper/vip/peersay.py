"""What another node says of the VIPs in its status, read with suspicion: what is strange is unknown, with a sentence. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from edgekeeper.model.text import printable
from edgekeeper.ops.status import answered, items

UNHEARD_S: Final = 1.5
"""A node that has not answered for so long is unheard: it may own any VIP, and nobody here would know."""

EVERY_S: Final = 0.5
"""Between two questions to the same node, for up to ``FEW`` others."""
FEW: Final = 3
LONGEST_EVERY_S: Final = 0.7
"""However many there are: one lost answer must not make a node unheard (2 x 0.7 < ``UNHEARD_S``)."""

STATES: Final = ("MASTER", "BACKUP", "FAULT", "STOP")
HEALTHS: Final = ("good", "members", "silent", "dead", "draining", "blind")
UNKNOWN_STATE: Final = "UNKNOWN"
UNKNOWN_HEALTH: Final = "unknown"

_MOST_VIPS = 200
_LONGEST_NAME = 63
_LONGEST_WHY = 300
_MOST_MEMBERS = 1_000_000
_HIGHEST_PRIORITY = 255


@dataclass(frozen=True, slots=True)
class PeerVip:
    """A VIP as a node tells it of itself.

    ``held``: its kernel has the address on the interface; ``shadow``: it covers it on the loopback interface. ``usable``: members that
    its service can use, None when they are not counted. ``since``: Unix time of ``state``.
    """

    state: str = UNKNOWN_STATE
    held: bool = False
    health: str = UNKNOWN_HEALTH
    usable: int | None = None
    can_take: bool = False
    priority: int = 0
    configured_priority: int = 0
    since: float | None = None
    drained: bool = False
    shadow: bool = False
    address: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class PeerView:
    """What is known of another node: ``answered`` is the monotonic time of its last answer that says anything of VIPs (None: never).

    ``why`` says why the last question was not answered so; it is empty when it was. ``vips`` is what the last answer said.
    """

    name: str
    answered: float | None = None
    why: str = ""
    vips: Mapping[str, PeerVip] = field(default_factory=dict)

    def failing(self, why: str, asked: float | None) -> PeerView:  # noqa: ARG002 - of no interest here
        """The same after a question that gave nothing: what it said stays, and becomes old."""
        return replace(self, why=why)


def every_s(peers: int) -> float:
    """Seconds between two questions to each of so many nodes: the work stays about the same, as far as ``UNHEARD_S`` allows."""
    return min(LONGEST_EVERY_S, EVERY_S * max(1.0, peers / FEW))


def heard(view: PeerView, now: float) -> Literal["ok", "stale", "never"]:
    """Whether a node's word is of now, of before, or has never come."""
    if view.answered is None:
        return "never"
    return "ok" if now - view.answered < UNHEARD_S else "stale"


def unheard(view: PeerView, now: float) -> str | None:
    """The sentence about a node that may own a VIP without anybody here knowing; None for one that is heard."""
    if heard(view, now) == "ok":
        return None
    ago = f"for {now - view.answered:.1f} s" if view.answered is not None else "yet"
    return f"{view.name} has not been heard {ago} and may own it too" + (f": {view.why}" if view.why else "")


def said(node: str, status: int, text: str) -> tuple[Mapping[str, PeerVip], str]:
    """The VIPs in an answer to ``/status?role=vip``, and why they are not known ("" when they are). Never raises."""
    document, why = answered(node, status, text)
    return ({}, why) if why else read(node, document)


def read(node: str, document: object) -> tuple[Mapping[str, PeerVip], str]:
    """The VIPs in a status document, and why they are not known ("" when they are). ``node`` is whose it should be."""
    found, why = items(document, node, "vip", "vips", most=_MOST_VIPS, longest_name=_LONGEST_NAME)
    return {name: _vip(item) for name, item in found.items()}, why


def _vip(item: Mapping[str, Any]) -> PeerVip:
    state, health = item.get("state"), item.get("health")
    return PeerVip(
        state=state if state in STATES else UNKNOWN_STATE,
        held=item.get("held") is True,
        health=health if health in HEALTHS else UNKNOWN_HEALTH,
        usable=_whole(item.get("usable"), _MOST_MEMBERS),
        can_take=item.get("can_take") is True,
        priority=_whole(item.get("priority"), _HIGHEST_PRIORITY) or 0,
        configured_priority=_whole(item.get("configured_priority"), _HIGHEST_PRIORITY) or 0,
        since=_moment(item.get("since")),
        drained=item.get("drained") is True,
        shadow=item.get("shadow") is True,
        address=_line(item.get("address"), _LONGEST_NAME),
        why=_line(item.get("why"), _LONGEST_WHY),
    )


def _whole(value: object, most: int) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else None


def _moment(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**40:
        return None
    return float(value)


def _line(value: object, limit: int) -> str:
    return printable(value, limit) if isinstance(value, str) else ""


def report(views: Mapping[str, PeerView], now: float) -> str:
    """The text of ``peers.json``, which the track script reads: what each node said last, and when. Times are CLOCK_MONOTONIC."""
    return json.dumps({"schema": 1, "mono": now, "peers": {view.name: {"mono": view.answered, "vips": _told(view)} for view in views.values()}})


def _told(view: PeerView) -> dict[str, dict[str, object]]:
    return {name: {"health": vip.health, "usable": vip.usable, "can_take": vip.can_take} for name, vip in view.vips.items()}
