"""keepalived.conf to its blocks: conditions, variables, sequences and included files worked in, every line with its place. Pure.

A reader, not a judge: nothing in a text raises. What is read is bounded (``MOST_LINES``), whatever a text asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from edgekeeper.engines.keepalived.cfg_values import Entry, Problem, Source
from edgekeeper.engines.keepalived.cfg_words import CLOSE, DEEPEST, LONGEST, OPEN, definition, filled, names, uncommented, words
from edgekeeper.model.finding import Place

MOST_LINES = 30_000
"""Lines that are read of one configuration, with all that sequences make of them."""
MOST_CHARS = 4_000_000
"""Characters that are looked at, with all that variables make of them."""
DEEPEST_BLOCK = 32
"""keepalived has four levels; more than this is no configuration, and values that nest deeper cannot be compared."""

_TOLD = -1

_INCLUDE = re.compile(r"(include[rmwba]?)\s+(\S.*)")
_CONDITION = re.compile(r"@(\^?)(\S+)\s+")
_SEQUENCE = re.compile(r"~SEQ(x?)\(\s*(\w+)\s*((?:,\s*-?(?:0x)?[0-9A-Fa-f]{1,9}\s*){1,3})\)\s*")
_LIST = re.compile(r"~LST\(\s*(\w+)\s*,([^(){}]*)\)\s*")


def includes(text: str) -> Iterator[tuple[int, str, str]]:
    """Number, keyword and pattern of each ``include`` line; keepalived looks for them before conditions and variables."""
    for number, line in enumerate(text.split("\n"), 1):
        if "include" in line and (found := _INCLUDE.fullmatch(uncommented(line))):
            yield number, found[1], (words(found[2]) or ("",))[0]


def ids(source: Source) -> tuple[str, ...]:
    """The names that ``@NAME`` lines ask for, in their order: for each of them a host is described."""
    seen: dict[str, None] = {}
    for one in _all(source, 0):
        for line in one.text.split("\n"):
            if "@" in line and (found := _CONDITION.match(line.strip())) and "$" not in found[2]:
                seen[found[2]] = None
    return tuple(seen)


def _all(source: Source, depth: int) -> Iterator[Source]:
    yield source
    if depth < DEEPEST:
        for included in source.includes.values():
            for inner in included.sources:
                yield from _all(inner, depth + 1)


def entries(source: Source, config_id: str | None) -> tuple[tuple[Entry, ...], tuple[Problem, ...]]:
    """The blocks of a file, and what keepalived would stumble over."""
    reader = _Reader(config_id)
    tree = _tree(reader.lines(source, 0), reader.problems)
    return tree, tuple(reader.problems)


@dataclass(slots=True)
class _Reader:
    """The state while lines go by."""

    config_id: str | None
    values: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    left: int = MOST_LINES
    chars: int = MOST_CHARS

    def lines(self, source: Source, depth: int) -> Iterator[tuple[Place, str]]:
        """The lines as they count."""
        gathering: tuple[str, list[str]] | None = None
        for number, raw in enumerate(source.text.removeprefix("\ufeff").split("\n"), 1):
            place = Place(source.name, number)
            line = uncommented(raw)
            if gathering is not None:
                gathering[1].append(line.removesuffix("\\").rstrip())
                if not line.endswith("\\"):
                    self.blocks[gathering[0]] = tuple(gathering[1])
                    gathering = None
                continue
            if not line:
                continue
            if number in source.includes and _INCLUDE.fullmatch(line):
                yield from self._included(source, number, depth)
                continue
            said = definition(line[self._condition(line) :]) if line[0] in "@$" and self._holds(line) else None
            if said is None:
                yield from self._line(line, place, 0)
            elif said[1] == "\\":
                gathering = (said[0], [])
            else:
                self.blocks.pop(said[0], None)
                self.values[said[0]] = said[1]
        if gathering is not None:
            self.blocks[gathering[0]] = tuple(gathering[1])

    def _included(self, source: Source, number: int, depth: int) -> Iterator[tuple[Place, str]]:
        included = source.includes[number]
        if included.why is not None:
            self.problems.append(Problem(Place(source.name, number), included.why))
        if depth < DEEPEST:
            for inner in included.sources:
                yield from self.lines(inner, depth + 1)

    @staticmethod
    def _condition(line: str) -> int:
        found = _CONDITION.match(line)
        return found.end() if found else 0

    def _holds(self, line: str) -> bool:
        """Whether a line with ``@NAME`` before it counts."""
        if line[0] != "@":
            return True
        found = _CONDITION.match(line)
        return found is not None and (found[2] == self.config_id) != bool(found[1])

    def _line(self, line: str, place: Place, depth: int) -> Iterator[tuple[Place, str]]:
        """One line with its condition, its sequences and its variables worked in: none, one or many."""
        if not self._is_within(place, depth):
            return
        self.chars -= len(line) + 1
        head = line[:1]
        if head == "@":
            if self._holds(line):
                yield from self._line(line[self._condition(line) :], place, depth + 1)
        elif head == "~":
            yield from self._sequence(line, place, depth)
        elif head == "$" and (said := definition(line)):
            self.values[said[0]] = said[1]
        elif head == "$" and (name := next((name for name in self.blocks if names(line, name)), None)) is not None:
            for inner in self.blocks[name]:
                yield from self._line(inner, place, depth + 1)
        else:
            yield from self._plain(line, place, depth)

    def _plain(self, line: str, place: Place, depth: int) -> Iterator[tuple[Place, str]]:
        before = line
        if "$" in line:
            line = uncommented(filled(line, self.values))
            self.chars -= len(line)
        if line[:1] in {"@", "~"} and line != before:
            yield from self._line(line, place, depth + 1)
            return
        self.left -= 1
        yield place, line[:LONGEST]

    def _is_within(self, place: Place, depth: int) -> bool:
        """Whether more may be read; says so once when not."""
        if self.left > 0 and self.chars > 0:
            return depth <= DEEPEST
        if self.left > _TOLD:
            self.left = _TOLD
            self.problems.append(Problem(place, f"the configuration becomes longer than {MOST_LINES} lines here; what follows was not read", severe=True))
        return False

    def _sequence(self, line: str, place: Place, depth: int) -> Iterator[tuple[Place, str]]:
        found = _SEQUENCE.match(line)
        if found is not None:
            name, items = found[2], _numbers(found[3], in_hex=bool(found[1]))
        elif (found := _LIST.match(line)) is not None:
            name, items = found[1], (item.strip() for item in found[2].split(","))
        else:
            self.problems.append(Problem(place, "this sequence was not understood; its lines were not read"))
            return
        for item in items:
            if not self._is_within(place, depth):
                break
            self.values[name] = item
            self.left -= 1
            yield from self._line(line[found.end() :], place, depth + 1)


def _numbers(said: str, *, in_hex: bool) -> Iterator[str]:
    numbers = [int(part.strip(), 16 if "x" in part.lower() else 10) if _is_number(part) else 0 for part in said.split(",")[1:]]
    last = numbers[-1]
    first = numbers[0] if len(numbers) > 1 else (1 if last > 0 else -1)
    step = numbers[1] if len(numbers) > 2 else (1 if last >= first else -1)
    if step == 0 or (last - first) * step < 0:
        return
    for number in range(first, last + (1 if step > 0 else -1), step):
        yield f"{number:x}" if in_hex else str(number)


def _is_number(part: str) -> bool:
    part = part.strip().lower().removeprefix("-")
    return part.removeprefix("0x").isascii() and (part.isdigit() or (part.startswith("0x") and len(part) > 2))


@dataclass(slots=True)
class _Open:
    """A block whose end has not come yet: the line that opened it, and what is in it so far."""

    words: tuple[str, ...]
    place: Place
    inside: list[Entry] = field(default_factory=list)


def _tree(lines: Iterator[tuple[Place, str]], problems: list[Problem]) -> tuple[Entry, ...]:
    """Blocks of lines; a brace may stand on the line of its block or below."""
    stack = [_Open((), Place("", 0))]
    for place, line in lines:
        said: list[str] = []
        for word in words(line):
            if word == OPEN:
                _opened(stack, said, place, problems)
                said = []
            elif word == CLOSE:
                _said(stack, said, place)
                said = []
                if len(stack) == 1:
                    problems.append(Problem(place, "a closing brace too many", severe=True))
                else:
                    _closed(stack)
            else:
                said.append(word)
        _said(stack, said, place)
    if len(stack) > 1:
        missing = f"{len(stack) - 1} closing brace{'s are' if len(stack) > 2 else ' is'} missing"
        problems.append(Problem(stack[-1].place, f"{missing}, the last one of the block that begins here", severe=True))
    while len(stack) > 1:
        _closed(stack)
    return tuple(stack[0].inside)


def _opened(stack: list[_Open], said: Sequence[str], place: Place, problems: list[Problem]) -> None:
    if len(stack) > DEEPEST_BLOCK:
        if not problems or problems[-1].text != "blocks nest too deep":
            problems.append(Problem(place, "blocks nest too deep", severe=True))
        stack.append(_Open((), place))  # its end is counted; what is in it is thrown away
        return
    inside = stack[-1].inside
    if said:
        stack.append(_Open(tuple(said), place))
    elif inside and inside[-1].block is None:
        head = inside.pop()
        stack.append(_Open(head.words, head.place))
    else:
        stack.append(_Open((), place))


def _said(stack: list[_Open], said: Sequence[str], place: Place) -> None:
    if said:
        stack[-1].inside.append(Entry(tuple(said), place))


def _closed(stack: list[_Open]) -> None:
    done = stack.pop()
    if len(stack) <= DEEPEST_BLOCK:
        stack[-1].inside.append(Entry(done.words, done.place, tuple(done.inside)))
