"""What pydantic found wrong, as sentences at a place in the file. Pure.

A sentence says what is wrong and what to write instead. Values of fields that may hold a secret are
never repeated.
"""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from edgekeeper.config.yamltext import Document, Path, dotted, read_yaml
from edgekeeper.errors import ConfigError, Mistake
from edgekeeper.model.text import printable
from edgekeeper.model.time import format_duration, parse_duration

_SECRET = re.compile(r"secret|token|password|passphrase|credential|proxy_protocol|(^|_)key$")
_TYPE_ERRORS = frozenset(
    {
        "bool_type", "dict_type", "float_type", "int_type", "int_from_float", "list_type", "literal_error", "mapping_type", "model_attributes_type",
        "model_type", "none_required", "string_type", "tuple_type",
    }
)  # fmt: skip
_LIMIT = 400
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class _Found:
    """One error: where it stands in the file, and the union branches that pydantic named on the way."""

    path: Path
    branch: tuple[int, str] | None
    key: bool
    error: Mapping[str, Any]


def explain(model: type[BaseModel], document: Document, err: ValidationError) -> list[Mistake]:
    """Every error of a validation as a mistake with its place."""
    found = [_locate(document, error) for error in err.errors(include_url=False)]
    # A list whose items are wrong is also told to be too short.
    found = [one for one in found if one.error["type"] != "too_short" or not document.raw(one.path)]
    out: list[Mistake] = []
    for one in _without_union_noise(model, document, found):
        what = one if isinstance(one, _Found) else one[1]
        path = one.path if isinstance(one, _Found) else one[0]
        unknown = isinstance(one, _Found) and (one.key or one.error["type"] == "extra_forbidden")
        place = document.place(path, key=unknown)
        text = _sentence(model, document, what) if isinstance(what, _Found) else what
        out.append(Mistake(place.line, place.column, dotted(path), printable(text, _LIMIT)))
    return list(dict.fromkeys(out))


def read_listing(model: type[M], text: str, file: str, key: str, example: str) -> tuple[Document, M | None, list[Mistake]]:
    """A file beside the config that holds one list below ``key``: what was read (None when that is wrong), and every mistake so far.

    ConfigError when it is no such file at all; an empty one, as a half-done write leaves it, is a mistake.
    """
    document = read_yaml(text, file)
    mistakes = list(document.mistakes)
    if document.value is None:
        mistakes.append(Mistake(1, 1, "", f"the file is empty; write {key}: [{example}]"))
        raise ConfigError(printable(file), tuple(mistakes))
    if not isinstance(document.value, dict):
        place = document.place(())
        mistakes.append(Mistake(place.line, place.column, "", f"write {key}: and the list below it"))
        raise ConfigError(printable(file), tuple(mistakes))
    try:
        return document, model.model_validate(document.value), mistakes
    except ValidationError as err:
        return document, None, mistakes + explain(model, document, err)


def nearest(name: str, known: Iterable[str]) -> str:
    """``unknown key; did you mean x?``, or the keys that are known."""
    names = list(known)
    close = difflib.get_close_matches(name, names, 1, 0.6)
    return f"unknown key; did you mean {close[0]}?" if close else f"unknown key; known here: {', '.join(names)}"


def fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a section, by the names that they have in the file."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def fields_at(model: type[BaseModel], path: Path) -> dict[str, FieldInfo]:
    """The fields of the section (or of all that a union allows) at a path."""
    out: dict[str, FieldInfo] = {}
    for kind in _kinds_at(model, path):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            out.update(fields(kind))
    return out


def _locate(document: Document, error: Mapping[str, Any]) -> _Found:
    path: list[str | int] = []
    here: Any = document.value
    branch: tuple[int, str] | None = None
    key = False
    loc: Sequence[str | int] = error["loc"]
    for index, step in enumerate(loc):
        if isinstance(here, dict) and step in here:
            here = here[str(step)]
            path.append(step)
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
            path.append(step)
        elif step == "[key]":
            key = True
        elif index == len(loc) - 1 and error["type"] == "missing":
            path.append(step)
        elif branch is None:
            branch = (len(path), str(step))
    return _Found(tuple(path), branch, key, error)


def _without_union_noise(model: type[BaseModel], document: Document, found: list[_Found]) -> list[_Found | tuple[Path, str]]:
    """Where a union failed, keep what the branch that was meant complains of, or say once what is possible."""
    out: list[_Found | tuple[Path, str]] = [one for one in found if one.branch is None]
    unions: dict[Path, dict[str, list[_Found]]] = {}
    for one in found:
        if one.branch is not None:
            depth, name = one.branch
            unions.setdefault(one.path[:depth], {}).setdefault(name, []).append(one)
    for prefix, branches in unions.items():
        meant = [errors for errors in branches.values() if not any(e.path == prefix and e.error["type"] in _TYPE_ERRORS for e in errors)]
        if meant:
            fewest = min(len(errors) for errors in meant)
            out.extend(next(errors for errors in meant if len(errors) == fewest))
        else:
            wanted = " or ".join(dict.fromkeys(_describe(kind) for kind in _kinds_at(model, prefix)))
            out.append((prefix, f"{_shown(document.raw(prefix), prefix)} is not {wanted}"))
    return out


def _sentence(model: type[BaseModel], document: Document, one: _Found) -> str:
    error, path = one.error, one.path
    kind, context = str(error["type"]), error.get("ctx", {})
    if kind == "extra_forbidden":
        return nearest(str(path[-1]), fields_at(model, path[:-1]))
    if kind == "missing":
        info = fields_at(model, path[:-1]).get(str(path[-1]))
        return f"missing; {_lower(info.description)}" if info and info.description else "missing"
    if document.raw(path) is None:
        return "nothing is written here; write a value, or remove the key"
    if kind == "value_error":
        return _quiet(str(context.get("error", error["msg"])), document.raw(path), path)
    if kind in _TYPE_ERRORS:
        return _wrong_type(model, document, path, kind)
    limit = _limit(kind, context, document.raw(path))
    if limit:
        return f"{_shown(document.raw(path), path)} is {limit}"
    if kind == "too_short":
        return "the list is empty; give at least one"
    if kind == "string_too_short":
        return f"{_shown(document.raw(path), path)} is too short; at least {context['min_length']} character{'s' if context['min_length'] > 1 else ''}"
    if kind == "string_pattern_mismatch":
        return f"{_shown(document.raw(path), path)} does not have the form {_form(str(context.get('pattern', '')))}"
    return _quiet(_lower(str(error["msg"])), document.raw(path), path)


def _limit(kind: str, context: Mapping[str, Any], raw: Any) -> str:
    """The bound that a number or duration broke, in the unit that it was written in."""
    words = {
        "greater_than_equal": ("ge", "too small; at least {}"),
        "greater_than": ("gt", "too small; it must be more than {}"),
        "less_than_equal": ("le", "too large; at most {}"),
        "less_than": ("lt", "too large; it must be less than {}"),
    }
    if kind not in words:
        return ""
    name, text = words[kind]
    bound = context[name]
    if isinstance(raw, str) and _is_duration(raw):
        return text.format(format_duration(bound))
    return text.format(f"{bound:g}" if isinstance(bound, float) else bound)


def _wrong_type(model: type[BaseModel], document: Document, path: Path, kind: str) -> str:
    raw = document.raw(path)
    wanted = [_describe(each) for each in _kinds_at(model, path)]
    text = f"{_shown(raw, path)} is not {' or '.join(dict.fromkeys(wanted)) or 'what is wanted here'}"
    if kind == "string_type" and isinstance(raw, bool | int | float):
        return f"{text}; put it in quotes"
    if kind == "int_type" and isinstance(raw, str) and raw.isdecimal():
        return f"{text}; write it without quotes"
    if kind == "bool_type" and isinstance(raw, str) and raw.lower() in {"yes", "no", "on", "off"}:
        return f"{text}; write {'true' if raw.lower() in {'yes', 'on'} else 'false'}"
    if kind in {"tuple_type", "list_type"} and isinstance(raw, str | int | float):
        return f"{text}; put it in brackets: [...]"
    return text


def _kinds_at(model: type[BaseModel], path: Path) -> list[Any]:
    """The types that a value at this path may have (None left out)."""
    kinds: list[Any] = [model]
    for step in path:
        below: list[Any] = []
        for kind in kinds:
            below += _below(kind, step)
        kinds = below
    return kinds


def _below(kind: Any, step: str | int) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        info = fields(kind).get(str(step))
        return _unwrap(info.annotation) if info else []
    arguments = get_args(kind)
    if get_origin(kind) is dict:
        return _unwrap(arguments[1])
    if get_origin(kind) in {tuple, list}:
        return _unwrap(arguments[0])
    return []


def _unwrap(annotation: Any) -> list[Any]:
    """An annotation without Annotated, type aliases, unions and None."""
    if annotation is None or annotation is type(None):
        return []
    origin = get_origin(annotation)
    if origin in {Union, types.UnionType}:
        return [kind for argument in get_args(annotation) for kind in _unwrap(argument)]
    if hasattr(annotation, "__metadata__"):
        return _unwrap(annotation.__origin__)
    return [annotation]


def _describe(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return "one of " + ", ".join(str(value) for value in get_args(kind) if value != "")
    if origin in {tuple, list}:
        return "a list"
    if origin is dict:
        return "a mapping"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        names = [*list(fields(kind))[:4], *(["..."] if len(kind.model_fields) > 4 else [])]
        return getattr(kind, "short", "") or f"a mapping with {', '.join(names)}"
    plain = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    return plain.get(kind, "the right kind of value")


def _shown(raw: Any, path: Path) -> str:
    if any(_SECRET.search(str(step)) for step in path):
        return "the value"
    match raw:
        case None:
            return "nothing"
        case bool():
            return str(raw).lower()
        case str():
            return repr(raw if len(raw) <= 60 else raw[:57] + "...")
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return str(raw)[:60]


def _quiet(text: str, raw: Any, path: Path) -> str:
    """The text without the value, where that may be a secret."""
    if isinstance(raw, str) and raw and any(_SECRET.search(str(step)) for step in path):
        return text.replace(repr(raw), "the value").replace(raw, "the value")
    return text


_FORMS = {
    "^/[!-~]*$": "of a URL's path, like /healthz",
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/": "of a Service's name with its namespace, like dns-system/resolver",
    r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]": "of a pod's name with its namespace, like edge/proxy-0",
    r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/[A-Za-z0-9]": "of labels with their namespace, like edge/app=proxy",
    r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/(": "of a workload with its namespace, like edge/deployment/proxy, or statefulset, daemonset",
    "^[a-z0-9]([a-z0-9-]{0,30}": "of a name of small letters, digits and dashes, at most 32",
    "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$": "of a namespace's name: small letters, digits and dashes",
    "^[a-z0-9]([a-z0-9.-]": "of a name of small letters, digits, dots and dashes",
    "^([a-z0-9.-]{1,253}/)?": "of a label, like edgekeeper.io/public=true",
    "^[ -~]{1,100}$": "of a name: at most 100 plain characters",
    "^[1-5]": "of a status, like 200 or 200-399",
    "^[a-z_]": "of an account's name",
    "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$": "of an interface's name, like eth0",
    "^/[A-Za-z0-9_.+/-]*": "of an absolute path of letters, digits and . _ + - only",
    "^[A-Za-z0-9][A-Za-z0-9_.-]{": "of a name: letters, digits, '.', '-', '_', and a letter or digit first",
    "^[A-Za-z0-9][A-Za-z0-9_.@": "of a unit's name, like netbird.service",
    "^(dns|tcp|tls": "of a URL: tls://HOST:PORT?sni=NAME, https://HOST/PATH, tcp://HOST:PORT, dns://SERVER/NAME?type=A or (probe only) icmp://HOST",
    "^([01][0-9]|2[0-3])": "of a time of day, like 02:00",
    "^[A-Za-z0-9_+/-]+$": "of a time zone's name, like Europe/Berlin",
    "^[A-Za-z0-9_.-]+$": "of keys with dots between them, like checks.connected",
    "^[!-~]+$": "of text without spaces",
}


def _form(pattern: str) -> str:
    said = next((form for start, form in _FORMS.items() if pattern.startswith(start)), None)
    if said is not None:
        return said
    if pattern.startswith("^https?://"):
        return "http://... or https://..." + (" with {member} in it" if "member" in pattern else "")
    return "of a file's path" if "\\x00" in pattern else pattern


def _is_duration(raw: str) -> bool:
    try:
        parse_duration(raw)
    except ValueError:
        return False
    return True


def _lower(text: str | None) -> str:
    return text[:1].lower() + text[1:].rstrip(".") if text else ""
