"""The fields of one line that is a JSON object or ``key=value`` pairs, with keys in small letters. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec

_PAIR = re.compile(r'(?:^|\s)([A-Za-z_][\w.@/-]{0,63})=(?:"((?:[^"\\]|\\.)*)"|(\S*))')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r"}


def fields_of(line: str) -> dict[str, str] | None:
    """The fields by name in small letters, numbers and truth values as text; None for what is neither. Of a name that is there twice, the first."""
    if line.lstrip().startswith("{"):
        found = json_object(line)
        return None if found is None else {key.lower(): _text(value) for key, value in reversed(found.items())}
    pairs: dict[str, str] = {}
    for key, quoted, bare in _PAIR.findall(line):
        pairs.setdefault(key.lower(), _ESCAPE.sub(lambda m: _PLAIN.get(m[1], m[1]), quoted) if quoted else bare)
    return pairs or None


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """The JSON object that the text is; None when it is none, is torn, or nests too deep."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return ""
