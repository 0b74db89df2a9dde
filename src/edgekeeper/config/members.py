"""The members file: ``members:`` with the entries that the config may hold too. Pure: text in, entries out."""

from __future__ import annotations

from pydantic import Field, ValidationError

from edgekeeper.config.dns import MemberEntry
from edgekeeper.config.kinds import Items, Section
from edgekeeper.config.mistakes import explain
from edgekeeper.config.yamltext import Document, dotted, read_yaml
from edgekeeper.errors import ConfigError, Mistake
from edgekeeper.model.text import printable


class MembersFile(Section):
    """A file that names the members, watched while edgekeeper runs."""

    members: Items[MemberEntry] = Field(description="The members; an empty list keeps the last full set and alarms.")


def parse_members(text: str, file: str) -> tuple[MemberEntry, ...]:
    """The entries of a members file; ConfigError names every mistake in it as ``file:line:column``.

    ``members: []`` is a file without members (what that means is the caller's to decide); an empty
    file, as a half-done write leaves it, is a mistake.
    """
    document = read_yaml(text, file)
    mistakes = list(document.mistakes)
    if document.value is None:
        mistakes.append(Mistake(1, 1, "", "the file is empty; write members: [ns-a=192.0.2.21:5353]"))
        raise ConfigError(printable(file), tuple(mistakes))
    if not isinstance(document.value, dict):
        place = document.place(())
        mistakes.append(Mistake(place.line, place.column, "", "write members: and the list below it"))
        raise ConfigError(printable(file), tuple(mistakes))
    entries: tuple[MemberEntry, ...] = ()
    try:
        entries = MembersFile.model_validate(document.value).members
    except ValidationError as err:
        mistakes += explain(MembersFile, document, err)
    mistakes += _taken(document, entries)
    if mistakes:
        raise ConfigError(printable(file), tuple(mistakes))
    return entries


def _taken(document: Document, entries: tuple[MemberEntry, ...]) -> list[Mistake]:
    """Names and addresses that two members share."""
    out: list[Mistake] = []
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(entries):
        for what, value in (("name", entry.name), ("address", f"{entry.host}:{entry.port}")):
            if value and (what, value) in seen:
                place = document.place(("members", index))
                out.append(Mistake(place.line, place.column, dotted(("members", index)), f"the {what} {value} is taken by another member; remove one"))
            seen.add((what, value))
    return out
