from __future__ import annotations
import time
from collections.abc import Iterator
import pytest
from .vipnodes import DNS, PEER, Pair, Pairs, pairs
pytestmark = [pytest.mark.root, pytest.mark.engine]

@pytest.fixture(scope="module")
def both() -> Iterator[Pairs]:
    with pairs() as made:
        yield made

def test_a(both: Pairs) -> None:
    t=time.monotonic()
    def story(made: Pair) -> None:
        print(made.version, time.monotonic()-t, made.holders(), made.status("edge-a"), made.family("edge-a"), made.readers("edge-a"))
    both.each(story)
    print(time.monotonic()-t)
    t=time.monotonic()
    both.each(story)
    print(time.monotonic()-t)
