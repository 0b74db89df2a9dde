"""What the owners of objects are told, and when: Events without repetition, and one status annotation an object. Pure.

The same remark (object, reason, text) is one Event: said at once when it is new, counted up every ten minutes while it stays true, which
also keeps it from expiring (an API server forgets an Event an hour after its last write), and forgotten an hour after it was last heard.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from edgekeeper.expose.kinds import Origin, Remark
from edgekeeper.model.text import printable

AGAIN_S: Final = 600.0
FORGOTTEN_S: Final = 3600.0
MOST_NEWS: Final = 10_000
"""More remarks at one time are not told as Events; a cluster in which so much is wrong is told of by metrics and logs."""
LONGEST_TEXT: Final = 1000
LONGEST_STATUS: Final = 65_536
"""Bytes of a status annotation; all annotations of an object together may have 256 KiB."""
MORE: Final = "..."
"""The key in a status that counts the hosts that were left out for its length."""


@dataclass(frozen=True, slots=True)
class News:
    """One remark over time (monotonic seconds): how often it was heard, last when, and what of it was written."""

    remark: Remark
    count: int
    heard: float
    written: int = 0
    wrote: float | None = None


Book = Mapping[str, News]
"""Event name to what is known of it."""


def heard(book: Book, remarks: Iterable[Remark], now: float) -> dict[str, News]:
    """The book after a pass with these remarks; those of files are nobody's to be told on."""
    out = {name: news for name, news in book.items() if now - news.heard < FORGOTTEN_S}
    for remark in remarks:
        if remark.origin.kind == "File":
            continue
        name = event_name(remark)
        news = out.get(name)
        if news is not None:
            out[name] = replace(news, count=news.count + 1, heard=now)
        elif len(out) < MOST_NEWS:
            out[name] = News(remark, 1, now)
    return out


def next_due(book: Book, now: float, shut: Collection[str] = ()) -> str | None:
    """The name of the Event to write next: new ones first, warnings before good news, the older before the younger; None when none is due.

    Namespaces that are ``shut`` take none just now.
    """
    due = [
        (news.wrote is not None, not news.remark.warning, news.wrote or news.heard, name)
        for name, news in book.items()
        if _due(news, now) and news.remark.origin.namespace not in shut
    ]
    return min(due)[3] if due else None


def _due(news: News, now: float) -> bool:
    return news.wrote is None or (news.count > news.written and now - news.wrote >= AGAIN_S)


def event_name(remark: Remark) -> str:
    """The same for the same remark on the same object, also of another process: so a second one counts up the first one's Event."""
    origin = remark.origin
    whole = "\0".join((origin.kind, origin.namespace, origin.name, origin.uid, remark.reason, message(remark)))
    digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{origin.name[:200].rstrip('.-')}.{digest}"


def message(remark: Remark) -> str:
    """The Event's sentence, on one line."""
    return printable(remark.text, LONGEST_TEXT)


def status_text(hosts: Mapping[str, str]) -> str:
    """The status annotation: host to one word, as compact JSON, the same for the same hosts; "" for none."""
    if not hosts:
        return ""
    items = sorted(hosts.items())
    text = _json(dict(items))
    if len(text) <= LONGEST_STATUS:
        return text
    room = LONGEST_STATUS - len(_json({MORE: str(len(items))}))
    kept: dict[str, str] = {}
    for host, word in items:
        room -= len(_json({host: word})) - 1
        if room < 0:
            break
        kept[host] = word
    return _json({**kept, MORE: str(len(items) - len(kept))})


def _json(value: Mapping[str, str]) -> str:
    return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Note:
    """One status annotation that was written: its text, and when (monotonic seconds)."""

    text: str
    at: float


SEEN_WITHIN_S: Final = 60.0
"""So long after a write its own event is waited for, before the annotation counts as taken away by somebody else."""


def changed_statuses(wanted: Mapping[Origin, str], seen: Mapping[Origin, str], written: Mapping[Origin, Note], now: float) -> dict[Origin, str]:
    """Which objects get which annotation ("" takes it away): those whose text is another than the one seen, and that was not just written.

    An object that is not among the wanted ones any more loses what this process has written onto it.
    """
    out: dict[Origin, str] = {}
    for origin, text in wanted.items():
        if origin.kind == "File" or seen.get(origin, "") == text:
            continue
        note = written.get(origin)
        if note is None or note.text != text or now - note.at >= SEEN_WITHIN_S:
            out[origin] = text
    for origin, note in written.items():
        if origin not in wanted and note.text:
            out[origin] = ""
    return out
