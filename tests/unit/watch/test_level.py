from __future__ import annotations

import pytest

from edgekeeper.watch.level import LEVELS, rank, rank_of


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("2026-09-07T06:58:03.777Z DEBG client/client.go:109: couldn't fetch peer state A: peer not found", "debug"),
        ("2026-09-07T06:58:01.123Z WARN [peer: a] client.go:126: level of INFO", "warning"),
        ("2026-09-07T06:58:01.123Z PANC a", "fatal"),
        ('time="2026-09-07T06:58:01Z" level=warning msg="INFO: no"', "warning"),
        ('{"ts":1.5,"caller":"a.go:1","msg":"x","level":"error"}', "error"),
        ('{"level":30,"msg":"pino"}', "info"),
        ('{"log.level": "WARN", "message": "ecs"}', "warning"),
        ("W1129 20:33:29.834123       1 controller.go:12] klog", "warning"),
        ("2026/11/29 20:33:29 [error] 7#7: *1 upstream timed out", "error"),
        ("2026-11-29 20:34:26.286 <INFO> Disabling protocol gw1", "info"),
        ("WARNING: it will be", "warning"),
        ("backend apps has no server available!", None),
        ("GET /ERROR/x", None),
        ("a" * 200 + " ERROR late, a word of the message", None),
        ("levels=high level=loud", None),
        ("", None),
    ],
)
def test_how_serious_a_line_says_it_is(line, level):
    found = rank_of(line.encode())
    assert (None if found is None else LEVELS[found]) == level


def test_a_level_that_is_none_is_refused_with_those_there_are():
    assert [rank(name) for name in LEVELS] == list(range(7))
    with pytest.raises(ValueError, match="'loud' is not a level; there are trace"):
        rank("loud")
