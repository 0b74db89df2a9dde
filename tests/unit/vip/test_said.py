"""Lines of keepalived's FIFO to states, whole or torn."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.vip.said import MOST_VIPS, Told, load, parse, step, stopped, tree

names = st.sampled_from(["dns", "api.example", "a-b_c"])
events = st.sampled_from(["MASTER", "BACKUP", "FAULT", "STOP", "DELETED", "MASTER_PRIORITY", "BACKUP_PRIORITY", "MASTER_RX_LOWER_PRI"])
lines = st.builds('INSTANCE "VI_{}" {} {}'.format, names, events, st.integers(0, 255))


def after(*texts, now=10.0, vips=None):
    vips = vips or {}
    for number, text in enumerate(texts):
        line = parse(text)
        assert line is not None
        vips = step(vips, line, now + number)
    return vips


@pytest.mark.parametrize(
    ("event", "state"), [("MASTER", "MASTER"), ("BACKUP", "BACKUP"), ("FAULT", "FAULT"), ("STOP", "STOP"), ("DELETED", "STOP"), ("MASTER_PRIORITY", "MASTER")]
)
def test_each_event_is_a_state(event, state):
    assert after(f'INSTANCE "VI_dns" {event} 254') == {"dns": Told(state, 254, 10.0)}


def test_a_priority_changes_the_priority_alone_and_a_state_that_is_told_again_keeps_its_time():
    vips = after('INSTANCE "VI_dns" MASTER 254', 'INSTANCE "VI_dns" BACKUP_PRIORITY 194', 'INSTANCE "VI_dns" MASTER 200')
    assert vips == {"dns": Told("MASTER", 200, 10.0)}
    assert after('INSTANCE "VI_dns" BACKUP 200', now=20.0, vips=vips) == {"dns": Told("BACKUP", 200, 20.0)}


def test_what_changes_nothing_gives_the_same_mapping():
    vips = after('INSTANCE "VI_dns" MASTER 254')
    for text in ('INSTANCE "VI_dns" MASTER 254', 'INSTANCE "VI_dns" MASTER_RX_LOWER_PRI 254', 'INSTANCE "VI_new" MASTER_RX_LOWER_PRI 1'):
        line = parse(text)
        assert line is not None
        assert step(vips, line, 99.0) is vips


@pytest.mark.parametrize(
    "text",
    [
        "", "INSTANCE", 'INSTANCE "VI_dns" MASTER', 'INSTANCE "VI_dns" MASTER 256', 'INSTANCE "VI_dns" MASTER -1', 'INSTANCE "VI_dns" MASTER 2 ',
        'INSTANCE "dns" MASTER 2', 'INSTANCE "VI_" MASTER 2', 'INSTANCE "VI_a b" MASTER 2', 'INSTANCE "VI_dns MASTER 2', 'GROUP "g" MASTER 2',
        'INSTANCE "VI_dns" master 2', 'INSTANCE "VI_dns" MASTER ٢', 'INSTANCE "VI_\x1b[2J" MASTER 2', 'INSTANCE " BACKUP 1', f'INSTANCE "VI_{"a" * 254}" STOP 1',
    ],
)  # fmt: skip
def test_what_is_no_line_of_keepalived_is_not_understood(text):
    assert parse(text) is None


@given(lines, lines, st.integers(0, 60))
def test_a_line_behind_a_torn_one_is_not_lost(torn, whole, cut):
    found = parse(torn[:cut] + whole)
    assert found is not None
    assert found._replace(whole=True) == parse(whole)
    assert found.whole is (not torn[:cut])


@given(st.text(max_size=60))
def test_nothing_that_comes_raises(text):
    parse(text)


@settings(max_examples=20)
@given(st.lists(lines, max_size=30))
def test_what_is_written_reads_back_the_same(texts):
    vips = after(*texts)
    assert load(json.loads(json.dumps(tree("edge-a", 5.0, vips, 2)))) == vips
    assert stopped(vips) is (bool(vips) and {told.state for told in vips.values()} == {"STOP"})


@pytest.mark.parametrize("found", [None, [], {}, {"schema": 2, "vips": {"a": {}}}, {"schema": 1, "vips": []}, {"schema": 1, "vips": {"a": {"state": "ODD"}}}])
def test_a_state_file_that_is_none_is_empty(found):
    assert load(found) == {}


def test_the_vips_that_are_remembered_do_not_grow_for_ever():
    vips = after('INSTANCE "VI_held" MASTER 1', *(f'INSTANCE "VI_v{i}" STOP 1' for i in range(MOST_VIPS + 5)))
    assert len(vips) == MOST_VIPS
    assert "held" in vips
    assert "v0" not in vips
