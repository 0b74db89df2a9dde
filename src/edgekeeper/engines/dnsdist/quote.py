"""Strings written so that no character of them can mean anything to a reader of YAML or Lua. Pure.

Letters, digits and a few harmless marks stand for themselves; everything else is escaped, so a quote,
a backslash, a newline or a comment sign from outside stays a character of the string.
"""

from __future__ import annotations

from typing import Any

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 !#$%&()*+,-./:;<=>?@[]^_`{|}~")

Yaml = Any
"""A tree of dict, list, str, int, float and bool."""


def yaml_string(text: str) -> str:
    """A double-quoted YAML scalar; YAML's escapes are code points, which dnsdist reads as UTF-8."""
    out = []
    for char in text:
        if char in _PLAIN:
            out.append(char)
        elif ord(char) < 0x100:
            out.append(f"\\x{ord(char):02x}")
        else:
            out.append(f"\\U{ord(char):08x}")
    return '"' + "".join(out) + '"'


def lua_string(text: str) -> str:
    r"""A double-quoted Lua string; bytes outside the harmless set become ``\ddd``, always three digits."""
    return '"' + "".join(chr(byte) if chr(byte) in _PLAIN else f"\\{byte:03d}" for byte in text.encode()) + '"'


def lua_value(value: Yaml) -> str:
    """A Lua literal: tables of named values, lists, strings, numbers, booleans."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return lua_string(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={lua_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "{" + ", ".join(lua_value(item) for item in value) + "}"
    msg = f"no Lua literal for a {type(value).__name__}"
    raise TypeError(msg)


def yaml_text(value: Yaml) -> str:
    """A tree as block YAML; keys are our own words, every string is quoted."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Yaml) -> list[str]:
    out: list[str] = []
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict | list | tuple) and item:
                out.append(f"{key}:")
                out += [f"  {line}" for line in _lines(item)]
            else:
                out.append(f"{key}: {_scalar(item)}")
    else:
        for item in value:
            if isinstance(item, dict | list | tuple) and item:
                first, *rest = _lines(item)
                out.append(f"- {first}")
                out += [f"  {line}" for line in rest]
            else:
                out.append(f"- {_scalar(item)}")
    return out


def _scalar(value: Yaml) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return yaml_string(value)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    msg = f"no YAML scalar for a {type(value).__name__}"
    raise TypeError(msg)
