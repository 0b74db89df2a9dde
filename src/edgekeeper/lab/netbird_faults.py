"""What goes wrong with an answer of the lab's servers on command: which of them, how often, and how. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

How = Literal["status", "body", "truncated", "torn", "empty", "hang", "slow", "reset_before", "reset_after", "reset_mid"]
_CARRIED_OUT = frozenset({"truncated", "torn", "empty", "slow", "reset_after", "reset_mid"})


@dataclass(slots=True)
class Fault:
    """One fault.

    ``status``: the answer is this status with ``message``; ``body``: it is this text. ``truncated``: half of the JSON as if that were all;
    ``torn``: the connection ends after half of it; ``empty``: 200 and nothing. ``hang``: nothing for ``seconds`` (0: for ever), then the
    answer; ``slow``: the answer bit by bit over ``seconds``. ``reset_before`` the request was carried out, ``reset_after`` it, ``reset_mid``
    half of the answer.

    Which requests: those of ``method`` and ``kind`` (``services``, ``resources``, ...) whose path holds ``path``; the first ``skip`` of them
    are spared and ``times`` are hit (0: all from then on). ``applied`` says whether a ``status``, ``body`` or ``hang`` happens after the
    request was carried out.
    """

    how: How
    method: str = ""
    kind: str = ""
    path: str = ""
    times: int = 1
    skip: int = 0
    status: int = 500
    message: str = "internal server error"
    body: str = ""
    seconds: float = 0.0
    applied: bool = False
    hit: int = 0

    def __post_init__(self) -> None:
        if self.how not in get_args(How):
            msg = f"{self.how!r} is no fault; known are {', '.join(get_args(How))}"
            raise ValueError(msg)
        self.applied = self.applied or self.how in _CARRIED_OUT

    def answer(self, status: int, body: bytes) -> tuple[int, bytes]:
        """What the client gets instead of the true answer."""
        match self.how:
            case "status":
                return self.status, json.dumps({"message": self.message, "code": self.status}).encode()
            case "body":
                return 200 if self.status == 500 else self.status, self.body.encode()
            case "truncated":
                return status, body[: len(body) // 2]
            case "empty":
                return 200, b""
            case _:
                return status, body


@dataclass(slots=True)
class Faults:
    """Those that wait for their requests; the first that fits is taken."""

    waiting: list[Fault] = field(default_factory=list)

    def add(self, fault: Fault) -> Fault:
        """One more; its ``hit`` counts."""
        self.waiting.append(fault)
        return fault

    def clear(self) -> None:
        """None any more."""
        self.waiting.clear()

    def take(self, method: str, path: str, kind: str) -> Fault | None:
        """The fault of this request, if it has one."""
        for fault in self.waiting:
            if (fault.method and fault.method != method) or (fault.kind and fault.kind != kind) or fault.path not in path:
                continue
            if fault.skip > 0:
                fault.skip -= 1
                continue
            fault.hit += 1
            if fault.times and fault.hit >= fault.times:
                self.waiting.remove(fault)
            return fault
        return None


def parse(given: Mapping[str, Any]) -> Fault:
    """A fault out of JSON; ValueError says what is wrong."""
    known = {each.name for each in fields(Fault)} - {"hit"}
    if unknown := given.keys() - known:
        msg = f"{', '.join(sorted(unknown))}: no such field; known are {', '.join(sorted(known))}"
        raise ValueError(msg)
    return Fault(**given)
