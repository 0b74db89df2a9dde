"""HTML and SVG out of elements, safe by construction. Pure.

Text becomes markup only through ``el``, which escapes it; there is no way to put a string into a page as it is. What a log says can
therefore never be a tag, an attribute or a style: names of tags and attributes are words of this program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from typing_extensions import override

from edgekeeper.model.text import printable

_NAME = re.compile("[A-Za-z][A-Za-z0-9-]*")
_VOID = frozenset({"meta", "link", "br", "wbr", "col"})
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


class Markup:
    """A piece of a page that is markup already. Only ``el`` and ``page`` make one."""

    __slots__ = ("_text",)

    def __init__(self, text: str, *, made_by_el: bool = False) -> None:
        if not made_by_el:
            msg = "markup is made by el(); text belongs in as a child, where it is escaped"
            raise TypeError(msg)
        self._text = text

    @override
    def __str__(self) -> str:
        return self._text


Child: TypeAlias = "Markup | str | Iterable[Child] | None"


def el(tag: str, /, *children: Child, **attributes: str | float | None) -> Markup:
    """An element. A ``_`` in an attribute's name is a ``-`` (``aria_label``), one at its end is dropped (``class_``); None leaves it out.

    Children that are text are escaped, with everything in them that could hide or turn a word written out.
    """
    head = "".join(f' {_name(name)}="{_escape(_value(value))}"' for name, value in attributes.items() if value is not None)
    tag = _tag(tag)
    body = "".join(_parts(children))
    return Markup(f"<{tag}{head}>" if tag in _VOID else f"<{tag}{head}>{body}</{tag}>", made_by_el=True)


def style_of(css: str) -> Markup:
    """A style element: its text is this program's own, and must not be able to end the element."""
    if "<" in css:
        msg = "a style sheet with a < in it could end its own element"
        raise ValueError(msg)
    return Markup(f"<style>{css}</style>", made_by_el=True)


def whole(root: Markup) -> str:
    """A document."""
    return f"<!doctype html>\n{root}\n"


def number(value: float) -> str:
    """A coordinate: at most three digits behind the point, none for nothing."""
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"


def _parts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            yield str(child)
        elif isinstance(child, str):
            yield _escape(child)
        else:
            yield from _parts(child)


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else number(value)


def _escape(text: str) -> str:
    return printable(text).translate(_ESCAPES)


def _name(name: str) -> str:
    return _checked(name.rstrip("_").replace("_", "-"))


def _tag(name: str) -> str:
    return _checked(name)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        msg = f"{name!r} is no name of a tag or an attribute"
        raise ValueError(msg)
    return name
