import random

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report.numbers import Counters


def fed(*blocks):
    counters = Counters()
    for block in blocks:
        counters.feed(block)
    return counters.numbers()


def test_lost_lines_are_a_hole():
    found = fed(range(1, 1000), range(1011, 2001))
    assert (found.seen, found.expected, found.resets) == (1989, 2000, 0)


def test_a_restart_begins_anew():
    found = fed(range(90_000, 91_000), range(1, 500))
    assert (found.seen, found.expected, found.resets) == (1499, 1499, 1)


def test_two_replicas_in_one_file_are_told_apart():
    found = fed(*([*range(100 * i, 100 * i + 100), *range(50_000 + 90 * i, 50_000 + 90 * i + 90)] for i in range(20)))
    assert (found.seen, found.expected, found.resets) == (3800, 3800, 1)


def test_replicas_with_the_same_numbers_cannot_be_judged():
    assert fed(range(1000), range(500, 1500)).expected == 0


def test_no_numbers_no_answer():
    assert fed().expected == 0


@settings(max_examples=10)
@given(st.integers(1, 20), st.integers(0, 1000), st.floats(0.8, 1.0))
def test_in_any_order_within_a_block_and_in_parts_the_share_is_right(parts, seed, kept):
    chance = random.Random(seed)
    numbers = [n for n in range(1500) if n in {0, 1499} or chance.random() < kept]
    whole = Counters()
    size = len(numbers) // parts + 1
    for i in range(0, len(numbers), size):
        block = numbers[i : i + size]
        chance.shuffle(block)
        part = Counters()
        part.feed(block)
        whole.merge(part)
    assert (whole.numbers().seen, whole.numbers().expected) == (len(numbers), 1500)
