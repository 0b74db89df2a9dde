"""A log of a whole machine: lines of several formats in one file, as a syslog or a journal has them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgekeeper.report.formats.base import Context, Format, Parsed

MIXED_BELOW = 0.95
"""A file is mixed when its most frequent format is that of less than this share of the lines that are of any."""


_OF_PROGRAM = {"keepalived": "keepalived", "keepalived_vrrp": "keepalived", "bgpd": "frr", "bird": "bird", "bird6": "bird", "haproxy": "haproxy"}
"""Whose lines a program's are, where an envelope names it: without their head some of them could be anybody's."""


class Mixed:
    """``mixed``: each line is read by the format that it is certainly of; a line that is of none says nothing."""

    name = "mixed"

    def __init__(self, formats: Callable[[], Sequence[Format]]) -> None:
        self._formats = formats

    def parse(self, line: bytes, context: Context) -> Parsed:
        """What the line says to the first format that likes it; the one that liked the line before is asked first."""
        named = _OF_PROGRAM.get(context.tag.lower())
        if named is not None and (own := next((f for f in self._formats() if f.name == named), None)) is not None:
            return own.parse(line, context)
        last: Format | None = context.state.get("mixed")
        if last is not None and _may_say(last, line) and last.likes(line):
            return last.parse(line, context)
        for one in self._formats():
            if one is not last and _may_say(one, line) and one.likes(line):
                context.state["mixed"] = one
                return one.parse(line, context)
        return None

    def likes(self, line: bytes) -> bool:
        """Never: a mixed file is recognised as a whole."""
        del line
        return False


def _may_say(form: Format, line: bytes) -> bool:
    """Whether the line has a word that the format looks for: cheaper than asking whose it is (19 against 53 us for a line of no format)."""
    words: tuple[bytes, ...] = getattr(form, "words", ())
    return not words or any(word in line for word in words)
