"""An operator who does what a fix of ``edgekeeper audit`` says, word by word."""

from __future__ import annotations

import re

_HEAD = re.compile(r"\S+?:(\d+): (.*)")


def carry_out(text: str, fix: str) -> str | None:
    """The configuration afterwards; None for a fix that leaves the words to the reader. AssertionError for one that does not say where."""
    steps: list[tuple[int, str, list[str]]] = []
    for line in fix.split("\n"):
        if line.startswith("    "):
            steps[-1][2].append(line)
        else:
            said = _HEAD.fullmatch(line)
            assert said, f"this does not say where: {line}"
            steps.append((int(said[1]) - 1, said[2], []))
    if not all(new for _, _, new in steps):
        return None
    lines = text.split("\n")
    for at, how, new in sorted(steps, key=lambda step: -step[0]):
        _step(lines, at, how, new)
    return "\n".join(lines)


def _step(lines: list[str], at: int, how: str, new: list[str]) -> None:
    if how.startswith("add to this default-server"):
        lines[at] = " ".join([lines[at].partition(" #")[0].rstrip(), *(line.strip() for line in new)])
    elif how.startswith("before this line"):
        lines[at:at] = new
    elif how.startswith(("below this line", "bind it to 127.0.0.1, or:")):
        lines[at + 1 : at + 1] = new
    elif how.startswith("on this line and those of its fellows"):
        _servers(lines, at, new[0].split())
    else:
        assert how.startswith(("in place of this line", "write", "bind it to 127.0.0.1, or write")), f"this does not say how: {how}"
        lines[at : at + 1] = new


def _servers(lines: list[str], at: int, figures: list[str]) -> None:
    """The figures in place of those of each server from here to the end of the section."""
    for place in range(at, len(lines)):
        words = lines[place].split()
        if lines[place][:1].strip():
            return
        if words[:1] == ["server"]:
            for name in figures[::2]:
                while name in words:
                    del words[words.index(name) : words.index(name) + 2]
            lines[place] = f"    {' '.join((*words, *figures))}"
