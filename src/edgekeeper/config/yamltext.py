"""YAML text to plain values, with the line and column of every key and value. Pure: text in, values out.

YAML 1.2: ``off`` and ``NO`` stay text. What a config has no use for is refused rather than guessed:
a key twice, merge keys, tags, directives, several documents, aliases that multiply.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from edgekeeper.errors import ConfigError, Mistake
from edgekeeper.model.text import printable

Path = tuple[str | int, ...]

MAX_BYTES = 2**18
"""About 8,000 members; the parser needs up to 15 s for the oddest MiB (measured 2026-11), and a running supervisor waits for it."""
MAX_VALUES = 50_000
MAX_DEPTH = 50
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({_TAG + "str", _TAG + "timestamp", _TAG + "value", "!"})
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DIRECTIVE = re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\n)*%")


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the file; both numbers count from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Document:
    """What a YAML file says: plain values, and where each stands.

    ``keys`` has the place of each mapping's key, ``values`` of each value, both by path. ``mistakes``
    are those found so far that did not prevent reading the rest.
    """

    value: Any = None
    keys: dict[Path, Place] = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Where a value (or its key) stands; for a path that the file has not, the nearest one above it."""
        while path:
            first, second = (self.keys, self.values) if key else (self.values, self.keys)
            found = first.get(path) or second.get(path)
            if found:
                return found
            path, key = path[:-1], True
        return Place(1, 1)

    def raw(self, path: Path) -> Any:
        """The plain value at a path; None where there is none."""
        here = self.value
        for step in path:
            try:
                here = here[step]
            except (KeyError, IndexError, TypeError):
                return None
        return here


def dotted(path: Path) -> str:
    """``dns.members.static.0``, as errors name a place in the config."""
    return ".".join(printable(str(step), 64) for step in path)


def decode(raw: bytes, file: str) -> str:
    """The text of a file; ConfigError when it is too large, not UTF-8 or holds control characters."""
    if len(raw) > MAX_BYTES:
        _refuse(file, 0, 0, f"larger than {MAX_BYTES // 2**10} KiB; this is not a config file")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        before = raw[: err.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        _refuse(file, line, column, f"byte 0x{raw[err.start]:02x} is not UTF-8 text; save the file as UTF-8")
    return text


def read_yaml(text: str, file: str) -> Document:
    """The values of a YAML text with their places; ConfigError when it is not YAML at all."""
    if len(text) > MAX_BYTES:
        _refuse(file, 0, 0, f"larger than {MAX_BYTES // 2**10} KiB; this is not a config file")
    control = _CONTROL.search(text)
    if control:
        place = _place_of(text, control.start())
        _refuse(file, place.line, place.column, f"control character {printable(control[0])}; remove it, or write it as an escape in double quotes")
    directive = _DIRECTIVE.search(text)
    if directive:
        place = _place_of(text, directive.end() - 1)
        _refuse(file, place.line, place.column, "a YAML directive (%...) is not read; remove the line")
    node = _compose(text, file)
    document = Document()
    if node is not None:
        reader = _Reader(document)
        try:
            document.value = reader.read(node, (), 0)
        except _TooMuchError as err:
            _refuse(file, node.start_mark.line + 1, node.start_mark.column + 1, str(err))
    return document


def _compose(text: str, file: str) -> Node | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            node: Node | None = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        _refuse(file, line, column, _problem(err, text, line))
    except RecursionError:
        _refuse(file, 0, 0, f"nested too deeply; at most {MAX_DEPTH} levels are read")
    except YAMLError as err:
        _refuse(file, 0, 0, f"not YAML: {printable(str(err).splitlines()[0] if str(err) else type(err).__name__, 200)}")
    except Exception as err:  # noqa: BLE001 - the parser lets other errors through on odd input (a character beyond Unicode, say)
        _refuse(file, 0, 0, f"not YAML: {printable(str(err) or type(err).__name__, 200)}")
    return node


def _problem(err: MarkedYAMLError, text: str, line: int) -> str:
    """The parser's complaint with what to do about it, where that is known."""
    problem = printable(err.problem or err.context or "unreadable", 200)
    rows = text.split("\n")
    row = rows[line - 1] if 0 < line <= len(rows) else ""
    if "'\\t'" in problem or (problem.startswith("found a tab")) or (row[: len(row) - len(row.lstrip())].count("\t")):
        return "a tab in the indentation; indent with spaces"
    if "mapping values are not allowed" in problem:
        return "a colon where no key can be; put the value in quotes, or check the indentation"
    if "another document" in problem:
        return "a second document (---); a config is one document"
    if "undefined alias" in problem:
        return f"{problem}; write the anchor before it, or put a value that begins with * in quotes"
    if "cannot start any token" in problem:
        return f"{problem}; put the value in quotes"
    if "<block end>" in problem or "<document start>" in problem:
        return "this line does not continue what stands above it; check its indentation, and the one above"
    if "stream end" in problem or "end of stream" in problem:
        return f"{problem} {printable(err.context or '')}; close the bracket or quote".replace("  ", " ")
    return f"not YAML: {problem}"


class _TooMuchError(Exception):
    """The document is larger than any config: too deep, or multiplied by aliases."""


class _Reader:
    """Turns nodes into plain values, and remembers where they stood."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.count = 0

    def read(self, node: Node, path: Path, depth: int) -> Any:
        self.count += 1
        if depth > MAX_DEPTH:
            msg = f"nested too deeply (or an alias that holds itself); at most {MAX_DEPTH} levels are read"
            raise _TooMuchError(msg)
        if self.count > MAX_VALUES:
            msg = f"more than {MAX_VALUES} values (aliases count each time); this is not a config file"
            raise _TooMuchError(msg)
        empty = node.tag == _TAG + "null" and node.value == "" and path in self.document.keys
        # The mark of an empty value is wherever the next thing stands, lines below: its key's place is meant.
        self.document.values[path] = self.document.keys[path] if empty else Place(node.start_mark.line + 1, node.start_mark.column + 1)
        match node:
            case MappingNode():
                return self.mapping(node, path, depth)
            case SequenceNode():
                self.check_tag(node, path, "seq")
                return [self.read(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
            case _:
                return self.scalar(node, path)

    def mapping(self, node: MappingNode, path: Path, depth: int) -> dict[str, Any]:
        self.check_tag(node, path, "map")
        out: dict[str, Any] = {}
        for key, value in node.value:
            place = Place(key.start_mark.line + 1, key.start_mark.column + 1)
            if not isinstance(key, ScalarNode):
                self.mistake(place, path, "a key must be text, not a list or mapping")
                continue
            if key.tag == _TAG + "merge":
                self.mistake(place, path, "merge keys (<<) are not read; write the keys out")
                continue
            name = self.whole(str(key.value), place, path)
            if name in out:
                first = self.document.keys[*path, name]
                self.mistake(place, (*path, name), f"the key is given twice, first in line {first.line}; remove one")
                continue
            self.document.keys[*path, name] = place
            out[name] = self.read(value, (*path, name), depth + 1)
        return out

    def scalar(self, node: Node, path: Path) -> Any:
        text = self.whole(str(node.value), self.document.values[path], path)
        tag = str(node.tag)
        if tag in _TEXT_TAGS:
            return text
        if tag == _TAG + "null":
            return None
        if tag == _TAG + "bool":
            return text.lower() == "true"
        if tag == _TAG + "int":
            return int(text) if _INT.fullmatch(text) else text
        if tag == _TAG + "float":
            return float(text) if _FLOAT.fullmatch(text) else text
        self.check_tag(node, path, "str")
        return text

    def whole(self, text: str, place: Place, path: Path) -> str:
        """The text, unless an escape in it is half a character, which no file or packet can hold."""
        if _SURROGATE.search(text):
            self.mistake(place, path, "half a character (an escape from \\ud800 to \\udfff); write the whole one")
            return _SURROGATE.sub("\ufffd", text)
        return text

    def check_tag(self, node: Node, path: Path, wanted: str) -> None:
        if str(node.tag) not in {_TAG + wanted, "!"}:
            place = self.document.values[path]
            self.mistake(place, path, f"the tag {printable(str(node.tag).replace(_TAG, '!!'), 64)} is not read; write the value without it")

    def mistake(self, place: Place, path: Path, what: str) -> None:
        self.document.mistakes.append(Mistake(place.line, place.column, dotted(path), what))


def _place_of(text: str, offset: int) -> Place:
    return Place(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _refuse(file: str, line: int, column: int, what: str) -> NoReturn:
    raise ConfigError(printable(file), (Mistake(line, column, "", what),)) from None
