"""What an engine keeps for the next supervisor comes back as it was."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from edgekeeper.model.kept import Keeper, Kept


@dataclass(frozen=True, slots=True)
class Wish:
    names: tuple[str, ...]
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    path: str


KEEPER = Keeper[Wish, Place](Kept[Wish, Place])


@pytest.mark.parametrize("seat", [Place("/run/x"), None])
def test_there_and_back(seat: Place | None) -> None:
    wish = Wish(("a", 'b"\n'), 0.29)
    text = KEEPER.dump(wish, seat)
    assert text.endswith("}\n")
    assert KEEPER.load(text) == (wish, seat)
    assert KEEPER.dump(*KEEPER.load(text)) == text


@pytest.mark.parametrize("text", ["", "[]", '{"intent": {"names": 1}, "seat": null}', '{"seat": null}'])
def test_what_cannot_be_read_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        KEEPER.load(text)
