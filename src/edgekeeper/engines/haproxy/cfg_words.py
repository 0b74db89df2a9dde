r"""One line of haproxy.cfg to words, as HAProxy splits it. Pure.

What HAProxy 2.6, 3.0 and 3.2 do (measured by what they say of a server's name): words are parted by white space; ``#``
begins a comment anywhere outside of quotes; a backslash outside of single quotes writes ``\ ``, ``\#``, ``\\``, ``\"``,
``\'``, ``\t``, ``\n``, ``\r``, ``\x41``, and stands for itself before anything else; ``\$`` is a dollar sign inside double
quotes only; variables (``$X``, ``${X}``, ``${X-default}``, ``${X[*]}``) count inside double quotes only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SPACE = " \t\r\n\v\f"
_HEX = frozenset("0123456789abcdefABCDEF")
_PLAIN_ESCAPES = {" ": " ", "\\": "\\", "#": "#", '"': '"', "'": "'", "t": "\t", "n": "\n", "r": "\r"}
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(\[\*\])?(?:-([^}]*))?\}|([A-Za-z_][A-Za-z0-9_]*))")


def words(line: str, env: Mapping[str, str] | None = None) -> tuple[str, ...]:  # noqa: C901 - a state machine, read in one piece
    """The words of a line, without its comment.

    A variable that ``env`` does not name keeps its text (``${X}``), or becomes its default where it has one. A quote that
    is never closed, an error for HAProxy, reaches to the end of the line.
    """
    out: list[str] = []
    word: list[str] | None = None
    quote = ""
    at = 0
    while at < len(line):
        char = line[at]
        if quote != "'" and char == "\\":
            text, at = _escaped(line, at, in_double=quote == '"')
        elif char == quote:
            quote, text, at = "", "", at + 1
        elif not quote and char in "\"'":
            quote, text, at = char, "", at + 1
        elif not quote and char == "#":
            break
        elif not quote and char in _SPACE:
            if word is not None:
                out.append("".join(word))
            word, at = None, at + 1
            continue
        elif quote == '"' and char == "$" and (found := _VARIABLE.match(line, at)):
            text, at = _value(found, env or {}), found.end()
            if found[2] and found[1] in (env or {}):  # ${X[*]} is as many words as its value has
                first, *more = text.split() or [""]
                for part in more:
                    out.append("".join(word or ()) + first)
                    word, first = None, part
                text = first
        else:
            text, at = char, at + 1
        word = [] if word is None else word
        word.append(text)
    if word is not None:
        out.append("".join(word))
    return tuple(out)


def expand(text: str, env: Mapping[str, str]) -> str:
    """An address with the variables that ``env`` names (HAProxy expands those in addresses without quotes too)."""
    return _VARIABLE.sub(lambda found: _value(found, env), text) if "$" in text else text


def _escaped(line: str, at: int, *, in_double: bool) -> tuple[str, int]:
    """What the backslash at ``at`` writes, and where the line goes on."""
    after = line[at + 1 : at + 2]
    if after and after in _PLAIN_ESCAPES:
        return _PLAIN_ESCAPES[after], at + 2
    if after == "$" and in_double:
        return "$", at + 2
    digits = line[at + 2 : at + 4]
    if after == "x" and len(digits) == 2 and _HEX.issuperset(digits):
        return chr(int(digits, 16)), at + 4
    return "\\", at + 1


def _value(found: re.Match[str], env: Mapping[str, str]) -> str:
    name = found[1] or found[4]
    if name in env:
        return env[name]
    return found[3] if found[3] is not None else found[0]
