"""What forbids a cure: the service's own health document, what it needs, and a pause that somebody asked for. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgekeeper.model.text import printable


@dataclass(frozen=True, slots=True)
class Known:
    """What one source of evidence says of a cure now: ``may`` is None when it does not know. ``why`` is a sentence."""

    may: bool | None
    why: str


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause that somebody asked for: until a Unix time (None: until it is ended), and the reason that was given."""

    until: float | None
    why: str = ""


def judge_health(url: str, status: int, text: str, need: Sequence[str]) -> Known:
    """What a health document says: each key of ``need`` (``checks.management_connected``) must be true in it.

    One that is false forbids. A document that cannot be read, or lacks a key, or has something else than true or false there, is
    not known: a service that is wedged so badly that it cannot say how it is must not be protected by that. The status of the
    answer does not count: NetBird's proxy says 200 however it is, others say 503 and send the document all the same.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return Known(None, f"{url} (HTTP {status}) is not JSON")
    values = {key: _at(found, key) for key in need}
    if false := [key for key, value in values.items() if value is False]:
        return Known(False, f"{' and '.join(false)} is false in {url}: a service restarted now would serve nothing")
    if unclear := [key for key, value in values.items() if value is not True]:
        return Known(None, f"{unclear[0]} is neither true nor false in {url} (HTTP {status})")
    return Known(True, f"{' and '.join(need)} is true in {url}")


def forbids(evidence: Sequence[Known]) -> Known:
    """All the evidence as one: what forbids first; else what is known to be well; else a cure is allowed, and the sentence says how little is known."""
    for may in (False, True):
        if said := [known.why for known in evidence if known.may is may]:
            return Known(may, "; ".join(said))
    if not evidence:
        return Known(True, "nothing is asked before a cure")
    return Known(True, f"what the service needs is unknown, which forbids nothing: {'; '.join(known.why for known in evidence)}")


def pause_text(pause: Pause) -> str:
    """A pause as it is kept in its file."""
    return json.dumps({"schema": 1, "until": pause.until, "why": pause.why}) + "\n"


def read_pause(text: str) -> Pause:
    """The pause in a file. Whatever else stands in it (nothing, too: ``touch`` is enough) is a pause without an end: somebody meant one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return Pause(None, "")
    until, why = found.get("until"), found.get("why")
    end = float(until) if isinstance(until, int | float) and not isinstance(until, bool) else None
    return Pause(end, printable(why, 200) if isinstance(why, str) else "")


def paused(pause: Pause | None, now: float) -> str | None:
    """Why a pause forbids a cure at this Unix time, or None."""
    if pause is None or (pause.until is not None and pause.until <= now):
        return None
    until = "until it is ended (edgekeeper watch resume)" if pause.until is None else f"for another {pause.until - now:.0f} s"
    return f"cures are paused {until}{': ' + pause.why if pause.why else ''}"


def _at(found: Any, key: str) -> object:
    for part in key.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(part)
    return found
