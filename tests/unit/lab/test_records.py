"""What the load generator wrote, as figures."""

from __future__ import annotations

import json

import pytest

from edgekeeper.lab.records import Record, read, samples, tally


def rec(number: int, sent: float, took: float | None, rcode: int | None = 0, by: int | None = 21, tries: int = 0) -> Record:
    return Record(number, sent, None if took is None else sent + took, rcode if took is not None else None, by, tries, None)


def test_lines_read_back() -> None:
    line = json.dumps([0, 1.5, 1.6, 0, 21, 0, None])
    assert read([line]) == (Record(0, 1.5, 1.6, 0, 21, 0, None),)
    for wrong in ("{}", "[1,2]", "[]"):
        with pytest.raises(ValueError, match="not a record"):
            read([wrong])


def test_figures() -> None:
    records = [rec(0, 0, 0.001), rec(1, 0.1, None), rec(2, 0.2, 3.5), rec(3, 0.3, 2.5), rec(4, 0.4, 0.001, rcode=2), rec(5, 0.5, 0.002, tries=2)]
    t = tally(records)
    assert (t.asked, t.unanswered_3s, t.unanswered_5s, t.wrong, t.late) == (6, 3, 2, 1, 2)
    assert t.latest_s == pytest.approx(3.5)
    assert t.most_tries == 2
    assert t.by == {21: 4}
    assert t.rcodes == {0: 4, 2: 1}
    assert t.figures()["unanswered_3s"] == 3


def test_an_error_code_is_a_failure_that_was_known_at_once() -> None:
    (wrong,) = samples([rec(0, 1.0, 0.01, rcode=2)], 3.0)
    assert not wrong.ok
    assert wrong.done == pytest.approx(1.01)


def test_a_lost_datagram_was_lost_when_it_was_sent_and_a_stream_only_knows_at_its_timeout() -> None:
    lost = [rec(0, 1.0, None)]
    assert samples(lost, 3.0)[0].done == pytest.approx(1.05)
    assert samples(lost, 3.0, datagrams=False)[0].done == pytest.approx(4.0)


def test_one_dead_member_of_three_is_one_outage() -> None:
    records = [rec(n, n / 100, None if n % 3 == 0 and 100 <= n < 330 else 0.001) for n in range(500)]
    outage = tally(records).outage
    assert outage is not None
    assert outage.min_s <= 3.27 - 1.02 <= outage.max_s, "from the first question that was hurt to the last"
    assert outage.max_s - outage.min_s < 0.2


def test_nothing_lost_is_no_outage() -> None:
    assert tally([rec(n, n / 100, 0.001) for n in range(100)]).outage is None
    assert tally([]).asked == 0
