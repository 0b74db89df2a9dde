"""How serious a log line says it is. Pure.

Known ways to say so: a word near the line's start (``2026-09-07T06:58:01.123Z WARN client.go:126: ...``, ``[error]``, ``<ERR>``), a
``level=warn`` pair, a JSON member ``"level":"warn"`` (also a number, as pino writes them), and the letter that klog begins with.
"""

from __future__ import annotations

import re
from typing import Final

LEVELS: Final = ("trace", "debug", "info", "notice", "warning", "error", "fatal")
"""The names that a configuration uses, from the least serious to the most."""

_WORDS: Final = {
    "trace": ("TRACE", "TRAC", "TRC"),
    "debug": ("DEBUG", "DEBG", "DBG"),
    "info": ("INFO", "INF"),
    "notice": ("NOTICE", "NOTE"),
    "warning": ("WARNING", "WARN", "WRN"),
    "error": ("ERROR", "ERRO", "ERR"),
    "fatal": ("FATAL", "FATL", "FTL", "PANIC", "PANC", "CRITICAL", "CRIT", "ALERT", "EMERGENCY", "EMERG", "DPANIC"),
}
_RANK: Final = {word.encode(): LEVELS.index(name) for name, words in _WORDS.items() for word in words}
_KLOG: Final = {b"I": b"INFO", b"W": b"WARN", b"E": b"ERROR", b"F": b"FATAL"}

_LONGEST_FIRST: Final[list[bytes]] = sorted(_RANK, key=len, reverse=True)
_ANY = b"|".join(_LONGEST_FIRST)
_PAIR = re.compile(rb'(?:["\s]|^)(?:log\.)?(?:level|lvl|severity)"?\s{0,4}[:=]\s{0,4}"?(\w{1,12})', re.IGNORECASE)
_WORD = re.compile(rb"(?:(?<![^\s\[<|])(" + _ANY + rb")(?![^\s\]>|:,]))|\[(?i:(" + _ANY + rb"))\]")
_KLOG_HEAD = re.compile(rb"([IWEF])\d{4} \d\d:\d\d:\d\d")

_PAIR_WITHIN = 4096  # bytes: a JSON line may tell its level late
_WORD_WITHIN = 120  # bytes: further on, such a word belongs to the message


def rank(name: str) -> int:
    """How serious a level of a configuration is, counted from 0; ValueError names the levels that there are."""
    try:
        return LEVELS.index(name)
    except ValueError:
        msg = f"{name!r} is not a level; there are {', '.join(LEVELS)}"
        raise ValueError(msg) from None


def rank_of(line: bytes) -> int | None:
    """How serious the line says it is, counted as ``rank`` does; None when it does not say so in a way that is known."""
    if b"=" in line or b'":' in line or b'" :' in line:
        pair = _PAIR.search(line, 0, _PAIR_WITHIN)
        if pair is not None and (found := _value(pair[1])) is not None:
            return found
    letter = _KLOG_HEAD.match(line)
    if letter is not None:
        return _RANK[_KLOG[letter[1]]]
    word = _WORD.search(line, 0, _WORD_WITHIN)
    return None if word is None else _RANK[(word[1] or word[2]).upper()]


def _value(word: bytes) -> int | None:
    if word.isdigit():  # pino: 10 trace, 20 debug, 30 info, 40 warning, 50 error, 60 fatal
        return {b"10": 0, b"20": 1, b"30": 2, b"40": 4, b"50": 5, b"60": 6}.get(word)
    return _RANK.get(word.upper())
