"""What the config's keys are, what each defaults to and why: for the reference, the editor's schema and ``check --defaults``. Pure."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from edgekeeper.config import kinds
from edgekeeper.config.members import BaseEntry
from edgekeeper.config.root import Root
from edgekeeper.model.time import format_duration

_KINDS: tuple[tuple[Any, str], ...] = (
    (kinds.Duration, "duration"),
    (kinds.Size, "size"),
    (kinds.Listen, "address:port"),
    (kinds.Host, "address or host name"),
    (kinds.Network, "network"),
    (kinds.Path, "path"),
    (kinds.FileName, "file name"),
    (kinds.Port, "port"),
    (kinds.Domain, "domain name"),
    (kinds.Node, "node name"),
)

_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false"}
_MEMBER_PATTERN = r"^([A-Za-z0-9._-]+=)?[^=\s\"']+$"


def _marks(part: Any) -> set[str]:
    """What tells a kind in the metadata that pydantic hands through: a validator's own identity, or a bound or pattern."""
    marks = [part, *getattr(part, "metadata", ())]
    bounds = {f"{name}={getattr(mark, name)}" for mark in marks for name in ("pattern", "le") if getattr(mark, name, None) is not None}
    return bounds or {str(id(part))}


_NAMED = {mark: name for kind, name in _KINDS for mark in _marks(kind.__metadata__[0])}


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its dotted path (``<name>`` for a mapping's keys, ``[]`` for a list's items), kind, default and reason.

    ``default`` is as one would write it, empty when the key must be given or holds keys of its own.
    """

    path: str
    kind: str
    required: bool
    default: str
    why: str


@dataclass(frozen=True, slots=True)
class Part:
    """A section: its path, what it is for, and its keys in the order of the file."""

    path: str
    what: str
    keys: tuple[Key, ...]


def parts(model: type[BaseModel] = Root, path: str = "") -> Iterator[Part]:
    """Every section below a model, outermost first; a kind of section that appears twice is given once."""
    yield from _parts(model, path, set())


def _parts(model: type[BaseModel], path: str, seen: set[type[BaseModel]]) -> Iterator[Part]:
    if model in seen:
        return
    seen.add(model)
    keys = tuple(_key(f"{path}.{info.alias or name}" if path else info.alias or name, info) for name, info in model.model_fields.items())
    yield Part(path, (model.__doc__ or "").strip().split("\n")[0], keys)
    for name, info in model.model_fields.items():
        below = f"{path}.{info.alias or name}" if path else info.alias or name
        for section, suffix in _sections(info.annotation):
            yield from _parts(section, below + suffix, seen)


def unset(section: BaseModel, path: str = "") -> Iterator[tuple[Key, str]]:
    """The keys that a config leaves to their defaults, each with the value in force."""
    for name, info in type(section).model_fields.items():
        below = f"{path}.{info.alias or name}" if path else info.alias or name
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from unset(value, below)
        elif isinstance(value, tuple) and value and all(isinstance(item, kinds.Section) and not item.short for item in value):
            for i, item in enumerate(value):
                yield from unset(item, f"{below}.{i}")
        elif name not in section.model_fields_set and not (isinstance(value, tuple | dict) and value and name in section.model_fields_set):
            yield _key(below, info), written(value, _kind(info.annotation, info.metadata))


def schema() -> dict[str, Any]:
    """The JSON schema of the config file, for editors."""
    out = Root.model_json_schema(mode="validation")
    out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    out["title"] = "edgekeeper.yaml"
    definitions = out["$defs"]
    for entry in _entries(BaseEntry):
        if entry.__name__ in definitions:
            definitions[entry.__name__] = {
                "description": "One member, written [name=]host[:port] or as a mapping.",
                "anyOf": [{"type": "string", "pattern": _MEMBER_PATTERN, "examples": [entry.example]}, definitions[entry.__name__]],
            }
    for section in _shortened(kinds.Section):
        if section.__name__ in definitions:
            definitions[section.__name__] = {"anyOf": [{"type": "string", "description": section.short}, definitions[section.__name__]]}
    _defaults_as_written(out)
    return out


def _shortened(kind: type[kinds.Section]) -> Iterator[type[kinds.Section]]:
    """The sections that may also be written as text; members are told apart, by their pattern."""
    for below in kind.__subclasses__():
        if not issubclass(below, BaseEntry):
            if below.short:
                yield below
            yield from _shortened(below)


def _entries(kind: type[BaseEntry]) -> Iterator[type[BaseEntry]]:
    """The kinds of members that the roles have."""
    for below in kind.__subclasses__():
        yield below
        yield from _entries(below)


def written(value: object, kind: str = "") -> str:
    """A value as one would write it in the file."""
    match value:
        case None:
            return "not set"
        case bool():
            return str(value).lower()
        case int() | float() if "duration" in kind:
            return format_duration(value)
        case float():
            return f"{value:g}"
        case tuple() | list():
            return f"[{', '.join(written(item, kind) for item in value)}]"
        case dict():
            return "{}" if not value else "{...}"
        case str():
            return value
        case _:
            return str(value)


def _key(path: str, info: FieldInfo) -> Key:
    kind = _kind(info.annotation, info.metadata)
    sections = list(_sections(info.annotation))
    if info.default is not PydanticUndefined:
        default = written(info.default, kind)
    elif info.default_factory is not None:
        default = "" if sections and not any(suffix for _, suffix in sections) else written(info.default_factory(), kind)  # type: ignore[call-arg]
    else:
        default = ""
    return Key(path, kind, info.is_required(), default, info.description or "")


def _kind(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    for mark in (mark for part in metadata for mark in _marks(part)):
        if mark in _NAMED:
            return _NAMED[mark]
    if hasattr(annotation, "__metadata__"):
        return _kind(annotation.__origin__, annotation.__metadata__)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Union, types.UnionType}:
        return " or ".join(dict.fromkeys(filter(None, (_kind(a) for a in arguments if a is not type(None)))))
    if origin in {tuple, list}:
        return f"list of {_kind(arguments[0])}"
    if origin is dict:
        return f"mapping of {_kind(arguments[0])} to {_kind(arguments[1])}"
    if origin is Literal:
        return ", ".join(str(value) for value in arguments if value != "")
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "member" if issubclass(annotation, BaseEntry) else "section"
    return _PLAIN.get(annotation, "value")


def _sections(annotation: Any, suffix: str = "") -> Iterator[tuple[type[BaseModel], str]]:
    """The sections that a key's value may be or hold, with what leads to them."""
    if hasattr(annotation, "__metadata__"):
        yield from _sections(annotation.__origin__, suffix)
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Union, types.UnionType}:
        for argument in arguments:
            yield from _sections(argument, suffix)
    elif origin in {tuple, list}:
        yield from _sections(arguments[0], suffix + "[]")
    elif origin is dict:
        yield from _sections(arguments[1], suffix + ".<name>")
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, suffix


def _defaults_as_written(node: Any) -> None:
    """Durations are text in the file: a default of 1.0 becomes ``1s``."""
    if isinstance(node, dict):
        default = node.get("default")
        if node.get("type") == "string" and isinstance(default, int | float):
            node["default"] = format_duration(default)
        for value in node.values():
            _defaults_as_written(value)
    elif isinstance(node, list):
        for value in node:
            _defaults_as_written(value)
