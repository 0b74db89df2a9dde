"""dnsdist's log lines as fields: ``key="value"`` pairs of 2.1, sentences of 1.x; and its words made fit to show. Pure."""

from __future__ import annotations

import re

_PAIR = re.compile(r"([A-Za-z_][\w.-]*)=\"((?:[^\"\\]|\\.)*)\"")
_START = re.compile(r"^\s*msg=\"")
_ESCAPE = re.compile(r"\\(.)")
_STATUS = re.compile(r"^Marking downstream (?:(?P<name>\S+) \((?P<address>[^)]+)\)|(?P<bare>\S+)) as '(?P<status>up|down)'")
_LONGEST = 300
_SECRETS = re.compile(r"\$scrypt\$\S+|[A-Za-z0-9+/]{43}=|[0-9a-f]{64}|(?<![^\s\"'])[^\s\"'/]{32,}(?![^\s\"'])")


def parse_log(line: str) -> dict[str, str]:
    """The fields of a line; ``msg`` is always there. A sentence about a member's status gets the 2.x names of its fields.

    Nothing is lost and nothing raises: a line that is no pair list is its own ``msg``.
    """
    text = line.rstrip("\r\n")
    if _START.match(text):
        fields = {key: _ESCAPE.sub(r"\1", value) for key, value in _PAIR.findall(text)}
        if "msg" in fields:
            return fields
    status = _STATUS.match(text)
    if status is None:
        return {"msg": text}
    address = status["address"] or status["bare"]
    fields = {"msg": "Updating status for backend", "backend.address": address, "backend.health_check.status": status["status"]}
    return {**fields, "backend.name": status["name"]} if status["name"] else fields


def tidy(text: str) -> str:
    """One line for a person: no secrets, no control characters, not long."""
    plain = _SECRETS.sub("[hidden]", "".join(char if char.isprintable() else " " for char in text)).strip()
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3] + "..."
