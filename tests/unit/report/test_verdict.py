"""The sentence that stands first, and what outages are put down to."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from tests.fakes.studies import T0, ask, hurt, mark, roll, skewed, study

from edgekeeper.model.sample import Sample
from edgekeeper.model.time import Span
from edgekeeper.report.book import Numbers
from edgekeeper.report.causes import caused
from edgekeeper.report.cells import Lane
from edgekeeper.report.document import Window
from edgekeeper.report.figures.counts import unseen_s
from edgekeeper.report.figures.drains import drains
from edgekeeper.report.kinds import TORN_COMPRESSION, TRUNCATED, Kind, Mark, Request
from edgekeeper.report.rules import Verdict
from edgekeeper.report.study import ALL_READ, Study
from edgekeeper.report.verdict import judge


def busy(marks=()) -> Study:
    made = study(marks)
    made.drains = drains(made)
    ask(made, "gitea@docker", [float(t) for t in range(1440)])
    return made


def test_who_how_long_and_by_what() -> None:
    made = busy(roll("n1", 100, "git/gitea-0"))
    ask(made, "gitea@docker", [115.5 + t for t in range(56)], bad=True)
    made.outages = (hurt("gitea@docker", 115, 171), hurt("wiki@docker", 120, 130))
    made.outages = caused(made)
    sentence, can = judge(made)
    assert can
    assert sentence == (
        "gitea@docker (lan) was down for 56 s to 58 s from 2026-09-07 04:41:55 UTC, the longest of 2 outages on 2 routes; "
        "cause: drain of n1 (gitea-0 moved); 56 of 1,496 requests failed (3.7 %)."
    )
    assert made.outages[1].cause == "drain of n1"


def test_an_open_outage_says_at_least_and_that_no_end_was_seen() -> None:
    made = busy()
    made.outages = (replace(hurt("gitea@docker", 1400, 1439), span=Span(39.0, math.inf), full=False),)
    sentence, _ = judge(made)
    assert sentence.startswith("gitea@docker (lan) was impaired for at least 39 s from")
    assert "nothing that was read tells why" in sentence
    assert "no begin or end was seen for gitea@docker (lan)" in sentence


def test_the_longest_that_is_sure_stands_before_what_may_have_been_longer() -> None:
    made = busy()
    made.outages = (hurt("gitea@docker", 100, 185), hurt("https://a.example", 100, 159, wide_s=120.0, group="probe"))
    assert judge(made)[0].startswith("gitea@docker (lan) was down for 1 min 25 s to 1 min 27 s")
    assert "https://a.example (probe) may have been down for longer (59 s to 2 min 59 s)" in judge(made)[0]


def test_no_outage_comes_with_its_bounds() -> None:
    made = busy()
    sentence, can = judge(made)
    assert can
    assert sentence == "No outage was seen: 0 of 1,440 requests failed (below 0.21 % at 95 %); an outage of up to 1.0 s would not have been seen."
    ask(made, "wiki@docker", [0.0, 1000.0])
    assert "an outage of up to 1.0 s (gitea@docker) to 16 min 40 s (wiki@docker) would not have been seen" in judge(made)[0]


def test_probes_bound_it_too() -> None:
    made = study()
    made.book.samples["probe", "https://a.example", "fresh"] = [
        Sample(T0 + t, "https://a.example", "fresh", T0 + t, T0 + t + 0.01, ok=True) for t in range(100)
    ]
    assert judge(made) == ("No outage was seen: all of 100 probes were answered; an outage of up to 1.0 s would not have been seen.", True)


def test_it_refuses_to_judge_where_too_much_is_missing() -> None:
    assert judge(study()) == ("Cannot judge: nothing was read.", False)
    assert judge(study(roll("n1", 0, "a/x-0"))) == ("Cannot judge: no request and no probe lies in the window; only events were read.", False)
    made = busy()
    made.book.sources["access"].skipped = Counter({TRUNCATED: 14})
    assert judge(made)[1]  # below 1 %
    made.book.sources["access"].skipped = Counter({TRUNCATED: 15})
    assert judge(made) == ("Cannot judge: 15 of 1,440 lines (1.0 %) could not be read, 15 of them because of: truncated; most are in access.", False)


def test_everything_that_overlaps_is_named_once_the_likeliest_first() -> None:
    marks = [
        *roll("n1", 100, "git/gitea-0"),
        mark(112, Kind.BGP_DOWN, "192.0.2.2", "frr", "gw"),
        mark(160, Kind.BGP_UP, "192.0.2.2", "frr", "gw"),
        mark(118, Kind.VRRP_STATE, "VI_dns", "keepalived", "dns2", state="MASTER", stamp_s=1.0),
        mark(118.3, Kind.VRRP_STATE, "VI_dns", "fifo", "dns2", state="MASTER"),
        mark(118.3, Kind.VRRP_STATE, "VI_dns", "fifo", "dns1", state="BACKUP"),
        mark(125, Kind.WATCH_SUPPRESSED, "netbird-proxy", "journal", "edge-1"),
        mark(900, Kind.SERVER_DOWN, "cp/cp-1", "haproxy"),
    ]
    made = busy(marks)
    made.outages = (
        hurt("gitea@docker", 115, 150, cause="no endpoint"),
        hurt("gitea@docker", 905, 910),
        hurt("gitea@docker", 700, 710),
        hurt("https://a.example", 115, 150, group="probe"),
    )
    first, second, third, probe = (h.cause for h in caused(made))
    assert first == "drain of n1 (gitea-0 moved); no endpoint"  # what lies before the ingress does not make it answer badly
    assert second == "server cp/cp-1 down"
    assert third == ""
    assert probe == "drain of n1; BGP to 192.0.2.2 down (gw); 2 more"


def test_a_probe_of_one_edge_is_not_hurt_by_the_watchdog_of_another() -> None:
    restarts = [mark(t, Kind.WATCH_RESTARTED, "netbird-proxy", f"journal-{host}", host) for t, host in ((120, "edge-1"), (121, "edge-2"))]
    made = busy(restarts)
    made.outages = (hurt("https://a.example", 115, 150, group="probe", source="edge-2"), hurt("https://a.example", 115, 150, group="probe", source="home"))
    assert [h.cause for h in caused(made)] == [
        "netbird-proxy restarted on edge-2",
        "netbird-proxy restarted on edge-1; netbird-proxy restarted on edge-2",
    ]


def test_what_the_lines_say_of_the_reason_comes_last() -> None:
    made = busy()
    made.book.cells.add(Lane("access", "gitea@docker", "lan"), Request(T0 + 120, 0.1, 503, "gitea@docker", cause="no endpoint"), Verdict.BAD)
    made.outages = (hurt("gitea@docker", 115, 150),)
    assert caused(made)[0].cause == "no endpoint"


def test_clocks_that_may_be_wrong_widen_what_overlaps() -> None:
    made = busy([mark(100, Kind.SERVER_DOWN, "cp/cp-1", "haproxy")])
    made.outages = (hurt("gitea@docker", 140, 150),)
    assert caused(made)[0].cause == ""
    skewed(made, "access", -15.0, 15.0, 0.0)
    assert caused(made)[0].cause == "server cp/cp-1 down"
    skewed(made, "access", -5.0, 5.0, 0.0)
    assert caused(made)[0].cause == ""
    skewed(made, "haproxy", -5.0, 5.0, 0.0)
    assert caused(made)[0].cause == "server cp/cp-1 down"  # 40 s less half a minute, and both may be wrong by 5 s


def test_a_window_beside_what_was_read_says_where_that_is() -> None:
    made = busy()
    made.window = Window(T0 + 86400, T0 + 90000)
    made.book.sources["access"].first, made.book.sources["access"].last = T0, T0 + 1439
    assert judge(made) == (
        "Cannot judge: no request and no probe lies in the window; those that were read are from 2026-09-07T04:40Z to 2026-09-07T05:03Z.",
        False,
    )


def test_clients_that_gave_up_are_no_good_answers() -> None:
    made = busy()
    for t in range(15):
        request = Request(T0 + t + 0.5, 30.0, 499, "gitea@docker")
        made.book.cells.add(Lane("access", "gitea@docker", "lan"), request, Verdict.GONE)
    assert "but of them 15 were given up by their clients before an answer came (499);" in judge(made)[0]
    for t in range(20):
        request = Request(T0 + t + 0.5, 0.1, 500, "gitea@docker")
        made.book.cells.add(Lane("access", "gitea@docker", "lan"), request, Verdict.OTHER)
    made.memo.clear()
    assert "(499) and 20 were answered by an error that is not counted as a failure of the way (500 and others);" in judge(made)[0]


def test_a_damaged_file_is_named_as_nobody_knows_how_much_is_missing() -> None:
    made = busy()
    made.book.sources["access"].skipped = Counter({TORN_COMPRESSION: 1})
    assert judge(made)[0].endswith("; what lies behind a damage in access was not read.")
    made.outages = (hurt("gitea@docker", 100, 185),)
    assert judge(made)[0].endswith("; what lies behind a damage in access was not read.")


def test_a_log_that_lacks_lines_proves_less() -> None:
    made = busy()
    made.outages = (hurt("gitea@docker", 100, 185),)
    made.book.sources["access"].numbers = Numbers(990, 1000)
    assert "never arrived" not in judge(made)[0]
    made.book.sources["access"].numbers = Numbers(900, 1000)
    assert judge(made)[0].endswith(
        "; but 100 of 1,000 lines of access never arrived, by the proxy's own running number: good answers may be missing between bad ones."
    )


def test_a_log_of_nothing_but_failures_is_not_taken_for_an_outage() -> None:
    made = study()
    ask(made, "gitea@docker", [100.0, 200.0, 300.0], bad=True)
    made.outages = (replace(hurt("gitea@docker", 100, 300), span=Span(200.0, math.inf)),)
    assert judge(made)[1]
    assert "if they are filtered, how long it lasted is not proven" in judge(made)[0]
    made.book.sources["access"].numbers = Numbers(3, 3000)
    assert judge(made) == (
        "Cannot judge: no good answer is in these logs, and 2,997 of 3,000 lines of access never arrived, by the proxy's own running number; are they filtered?",
        False,
    )


def test_a_database_is_no_cause_of_a_route_that_it_does_not_feed() -> None:
    made = study([*roll("n1", 100, "web/blog-pg-1"), mark(120, Kind.DB_SWITCHOVER, "web/blog-pg", to="blog-pg-2")])
    made.drains = drains(made)
    ask(made, "web-blog-x@kubernetes", [0.0])
    ask(made, "git-gitea-x@kubernetes", [0.0])
    made.outages = (hurt("web-blog-x@kubernetes", 118, 130), hurt("git-gitea-x@kubernetes", 118, 130))
    blog, git = caused(made)
    assert "switchover of blog-pg" in blog.cause
    assert "switchover" not in git.cause


def test_a_drill_s_results_have_no_time_of_day_and_are_told_all_the_same() -> None:
    one = study()
    one.book.marks.append(
        Mark(None, Kind.OUTAGE, "dns-member-killed/defaults", source="drills.json", data={"min_s": 0.0, "max_s": 0.005, "bad": 1, "asked": 2500})
    )
    assert judge(one) == ("Told by others, without a time of day: 1 outage told, the longest: dns-member-killed/defaults, less than 5 ms.", True)


def test_few_of_many_are_not_told_as_none() -> None:
    made = study()
    ask(made, "app", [t * 0.4 for t in range(3000)])
    ask(made, "app", [700.0], bad=True)
    assert "1 of 3,001 requests failed (0.033 %), never for long enough to be an outage" in judge(made)[0]


def test_the_rest_of_the_first_and_the_last_minute_is_no_time_in_which_an_outage_may_have_hidden() -> None:
    one = study(window=(-30.0, 90.0))
    ask(one, "git", range(60))
    one.book.sources["access"].first, one.book.sources["access"].last = T0, T0 + 59.0
    assert unseen_s(one, one.lanes()) > 30.0, "a window that was asked for counts as it is"
    one.window = replace(one.window, why=ALL_READ)
    assert unseen_s(one, one.lanes()) < 3.0
