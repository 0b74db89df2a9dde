r"""Text of keepalived.conf to lines and words, as keepalived splits them. Pure.

What keepalived's manual and its 2.2.7 and 2.3.4 say: ``#`` and ``!`` begin a comment anywhere outside of double quotes, unless a
backslash stands before them; words are parted by white space; quotes hold a word together; a brace outside of quotes is a word of
its own, except in ``${NAME}``; ``$NAME`` counts before white space or at the end of the line, ``${NAME}`` anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

OPEN = "{"
CLOSE = "}"
_MARK = re.compile(r'[!#"\\]')
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*)(?=\s|\Z))")
_DEFINITION = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_TOKEN = re.compile(r"""\s+|\$\{[^}\s]*\}|[{}]|"(?:[^"\\]|\\.)*(?:"|\Z)|'(?:[^'\\]|\\.)*(?:'|\Z)|\\.|[^\s{}"'\\$]+|.""", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

DEEPEST = 16
"""How often a value may name another one, and how deep files may include each other."""
LONGEST = 65536
"""Characters of one line with its variables filled in; keepalived's own lines are shorter."""


def uncommented(line: str) -> str:
    """The line without its comment and without white space around it."""
    line = line.strip()
    quoted = False
    at = 0
    out: list[str] = []
    while found := _MARK.search(line, at):
        out.append(line[at : found.start()])
        mark, at = found[0], found.end()
        if mark == "\\":
            after = line[at : at + 1]
            out.append(after if not quoted and after and after in "#!" else mark + after)
            at += len(after)
        elif mark == '"':
            quoted = not quoted
            out.append(mark)
        elif quoted:
            out.append(mark)
        else:
            return "".join(out).rstrip()
    return "".join((*out, line[at:])).rstrip()


def words(line: str) -> tuple[str, ...]:
    """The words of a line without a comment; braces outside of quotes are words ``{`` and ``}``, quoted ones keep their quotes."""
    out: list[str] = []
    word: list[str] | None = None
    for found in _TOKEN.finditer(line):
        token = found[0]
        if token in {OPEN, CLOSE} or token.isspace():
            if word is not None:
                out.append("".join(word))
                word = None
            if token in {OPEN, CLOSE}:
                out.append(token)
            continue
        word = [] if word is None else word
        if token[0] in "\"'":
            inside = _unescaped(token[1:-1] if len(token) > 1 and token[-1] == token[0] else token[1:])
            word.append(f'"{inside}"' if inside in {OPEN, CLOSE} else inside)
        else:
            word.append(_unescaped(token) if token[0] == "\\" else token)
    if word is not None:
        out.append("".join(word))
    return tuple(out)


def _unescaped(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        said = found[1]
        if said[0] == "x" and len(said) > 1:
            return chr(int(said[1:], 16))
        if said[0] in "01234567":
            return chr(int(said, 8) & 0xFF)
        return _ESCAPED.get(said, said)

    return _ESCAPE.sub(one, text) if "\\" in text else text


def definition(line: str) -> tuple[str, str] | None:
    """Name and value when a line defines ``$NAME=VALUE``."""
    found = _DEFINITION.fullmatch(line)
    return (found[1], found[2].strip()) if found else None


def filled(line: str, values: Mapping[str, str]) -> str:
    """A line with the variables that ``values`` names; an unknown one keeps its text. A value that names itself ends after ``DEEPEST`` steps."""
    for _ in range(DEEPEST):
        if "$" not in line or len(line) > LONGEST:
            break
        before, line = line, _once(line, values)
        if line == before:
            break
    return line[:LONGEST]


def _once(line: str, values: Mapping[str, str]) -> str:
    """Each variable once; it ends where the line has become too long, before a text of many long values takes all memory."""
    out: list[str] = []
    at = long = 0
    for found in _VARIABLE.finditer(line):
        value = values.get(found[1] or found[2], found[0])
        out += (line[at : found.start()], value)
        long += found.start() - at + len(value)
        at = found.end()
        if long > LONGEST:
            return "".join(out)
    return "".join((*out, line[at:]))


def names(line: str, name: str) -> bool:
    """Whether the line is nothing but this variable: where a definition of several lines is used."""
    return line in {f"${name}", f"${{{name}}}"}
