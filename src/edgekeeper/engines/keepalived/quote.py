"""What may stand in a keepalived.conf: one gate for every rendered word. Pure.

keepalived expands ``$``, cuts at ``!`` and ``#``, reads ``@`` at a line's start as a condition, ``~`` as a
sequence, and knows quotes and braces: none of these, and no space, ever passes.
"""

from __future__ import annotations

import re

from edgekeeper.errors import RefusedError

_WORD = re.compile(r"[A-Za-z0-9_./:%,=+?&\[\]-]+")
_LONGEST = 512


def word(text: str) -> str:
    """The word as it is, when keepalived reads it as that and nothing else; RefusedError else."""
    if not _WORD.fullmatch(text) or len(text) > _LONGEST:
        shown = "".join(char if char.isprintable() else "?" for char in text[:80])
        msg = f"{shown!r} cannot stand in keepalived's configuration; use letters, digits and . _ - / : only"
        raise RefusedError(msg)
    return text


def words(parts: tuple[str, ...]) -> str:
    """A command line of safe words, in quotes."""
    return '"' + " ".join(word(part) for part in parts) + '"'
