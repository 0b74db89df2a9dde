"""Objects out of a JSON document that spans many lines, as its lines come. Pure.

``kubectl get events -o json`` prints one document, with ``--watch`` one after the other. An object is handed out as soon as it is complete,
so that a document that was cut short loses no more than its end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from edgekeeper.report.formats.fields import json_object

OBJECT_MOST = 4 * 2**20
"""Characters of one object; a longer one is dropped."""

DEEPEST = 200
_TOKEN = re.compile(r'[{}\[\]"]')
_REST_OF_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"')


@dataclass(slots=True)
class _Buffer:
    parts: list[str] = field(default_factory=list)
    size: int = 0
    gave: bool = False
    """Whether objects within were handed out already: then this one is but their list."""

    def add(self, piece: str) -> None:
        self.size += len(piece)
        if self.gave or self.size > OBJECT_MOST:
            self.parts.clear()
        else:
            self.parts.append(piece)


@dataclass(slots=True)
class Collector:
    """Where in the document we are. Objects at the top, and of a list at the top, are handed out; with ``inner`` those of lists in them instead.

    ``lost`` counts objects that were dropped: too long, or no JSON.
    """

    inner: bool = False
    lost: int = 0
    _open: list[str] = field(default_factory=list)
    _buffers: list[_Buffer] = field(default_factory=list)

    @property
    def under_way(self) -> bool:
        """Whether a document has begun and not ended."""
        return bool(self._open)

    def feed(self, line: str) -> list[dict[str, Any]]:
        """The objects that this line completes. After what cannot be JSON, the next line begins anew."""
        found: list[dict[str, Any]] = []
        at = begun = 0
        while (token := _TOKEN.search(line, at)) is not None:
            at, sign = token.end(), token[0]
            if sign == '"':
                rest = _REST_OF_STRING.match(line, at) if self._open else None
                if rest is None:
                    return self._anew(found)
                at = rest.end()
            elif sign in "{[":
                if sign == "{" and self._is_here():
                    self._keep(line[begun : token.start()])
                    begun = token.start()
                    self._buffers.append(_Buffer())
                self._open.append(sign)
                if len(self._open) > DEEPEST:
                    return self._anew(found)
            elif not self._open or self._open.pop() != ("{" if sign == "}" else "["):
                return self._anew(found)
            elif sign == "}" and self._is_here():
                self._keep(line[begun:at])
                begun = at
                self._end(found)
        self._keep(line[begun:] + "\n")
        return found

    def _is_here(self) -> bool:
        """Whether an object that begins or ends here is one to hand out."""
        return len(self._open) < 2 and self._open != ["{"] if not self.inner else self._open in ([], ["["], ["{", "["])

    def _keep(self, piece: str) -> None:
        if self._buffers:
            self._buffers[-1].add(piece)

    def _end(self, found: list[dict[str, Any]]) -> None:
        buffer = self._buffers.pop()
        if self._buffers:
            self._buffers[-1].gave = True
        if buffer.gave:
            return
        one = json_object("".join(buffer.parts)) if buffer.size <= OBJECT_MOST else None
        if one is None:
            self.lost += 1
        else:
            found.append(one)

    def _anew(self, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.lost += bool(self._open or self._buffers)
        self._open.clear()
        self._buffers.clear()
        return found
