"""Text that came from outside, made fit for a terminal, a log line or an error."""

from __future__ import annotations


def printable(text: str, limit: int = 0) -> str:
    r"""The text on one line, with everything that could move a cursor or hide a word written out.

    Control, format (also the bidirectional overrides), private and unassigned characters, lone
    surrogates and line separators become ``\x1b``, ``\n``, ``\u202e``; a backslash stays as it is, so
    that doing it twice changes nothing. ``limit`` cuts the text to that many characters (0: never).
    """
    if limit and len(text) > limit:
        text = text[: limit - 3] + "..."
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
