"""What changes without a reload, played on a HAProxy of a few lines."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.haproxy import MEMBERS, topology

from edgekeeper.engines.haproxy.admin import _checked
from edgekeeper.engines.haproxy.live import Departure, change, commands
from edgekeeper.engines.haproxy.state import wanted
from edgekeeper.engines.haproxy.topology import Topology
from edgekeeper.model.backend import Member
from edgekeeper.ports import Cost

A, B, C = MEMBERS
OPEN = {"fail_open": True, "health": {"path": "/healthz"}}


class Runtime:
    """The servers of a running HAProxy, as its commands change them."""

    def __init__(self, topology: Topology) -> None:
        self.held = wanted(topology)
        self.enabled = dict.fromkeys(self.held, (True, True))

    def say(self, command: str) -> None:
        assert _checked(command) == command
        words = command.split()
        place = tuple(words[3 if words[0] == "shutdown" else 2].split("/"))
        match words:
            case ["add", "server", _, address, "weight", weight, *_]:
                if place not in self.held:  # "Already exists" otherwise
                    host, _, port = address.rpartition(":")
                    self.held[place] = (host.strip("[]"), int(port), int(weight))
                    self.enabled[place] = (False, "check" not in words)
            case ["set", "server", _, "addr", host, "port", port]:
                self.held[place] = (host, int(port), self.held[place][2])
            case ["set", "server", _, "weight", weight]:
                self.held[place] = (*self.held[place][:2], int(weight))
            case ["enable", "server", _]:
                self.enabled[place] = (True, self.enabled[place][1])
            case ["enable", "health", _]:
                self.enabled[place] = (self.enabled[place][0], True)
            case ["shutdown", "sessions", "server", _]:
                assert place in self.held
            case _:
                raise AssertionError(command)

    def change(self, old: Topology, new: Topology) -> None:
        said, gone = commands(old, new)
        for command in said:
            self.say(command)
        for leaving in gone:
            self.held.pop((leaving.backend, leaving.server), None)


members = st.lists(
    st.builds(
        Member,
        st.sampled_from(["a", "b", "c.example", "d-4", ""]),
        st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1"]),
        st.integers(80, 82),
        st.just(()),
        st.integers(1, 256),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda member: member.name or member.address,
).map(tuple)


@given(members, members, st.booleans())
def test_a_live_change_ends_where_a_reload_would_whether_done_once_or_twice_or_half(
    before: tuple[Member, ...], after: tuple[Member, ...], fail_open: bool
) -> None:
    said = OPEN if fail_open else {"health": {"path": "/healthz"}}
    old, new = topology(said, members=before), topology(said, members=after)
    cost = change(old, new).cost
    if cost is not Cost.LIVE:
        assert fail_open or old == new
        return
    runtime = Runtime(old)
    said_now, _ = commands(old, new)
    for command in said_now[: len(said_now) // 2]:  # interrupted, and done again by the next supervisor
        runtime.say(command)
    for _ in range(2):
        runtime.change(old, new)
        assert runtime.held == wanted(new)
        assert all(all(runtime.enabled[place]) for place in runtime.held), "what is added is enabled, and its checks too"


def test_what_it_costs() -> None:
    one = topology()
    assert change(one, one).cost is Cost.NOTHING
    assert change(one, topology(members=(A, B))).cost is Cost.LIVE
    assert change(one, topology(members=(replace(A, weight=5), B, replace(C, drain=True)))).cost is Cost.LIVE
    for other in (
        topology(hard_stop_after="7s"),
        topology({}, {}),
        topology({"balance": "source"}),
        topology({"listen": "127.0.0.1:9"}),
        topology(stats="127.0.0.1:8404"),
    ):
        assert change(one, other).cost is Cost.RELOAD
    assert change(one, topology({}, {})).why == "service web1 is new"


def test_where_rules_name_the_servers_another_set_of_them_is_a_reload() -> None:
    one = topology(OPEN)
    assert change(one, topology(OPEN, members=(replace(A, weight=5), replace(B, host="192.0.2.9"), C))).cost is Cost.LIVE
    assert change(one, topology(OPEN, members=(A, B))).cost is Cost.RELOAD
    assert change(one, topology(OPEN, members=(A, B, replace(C, drain=True)))).cost is Cost.RELOAD, "who is drained is not waited for any more"


def test_who_is_moved_to_another_address_loses_who_is_connected_to_the_old_one() -> None:
    said, gone = commands(topology(), topology(members=(replace(A, host="2001:db8::9"), B)))
    assert said == ("set server web0/web-a addr 2001:db8::9 port 80", "shutdown sessions server web0/web-a")
    assert gone == (Departure("web0", "web-c"),)


def test_a_newcomer_is_added_with_all_that_it_would_have_in_the_file_and_enabled_last() -> None:
    said, _ = commands(topology({"health": {"path": "/"}}, members=(A,)), topology({"health": {"path": "/"}}, members=(A, B)))
    assert said == (
        "add server web0/web-b 192.0.2.2:80 weight 100 check inter 1s fastinter 500ms fall 2 rise 3 on-marked-down shutdown-sessions",
        "set server web0/web-b addr 192.0.2.2 port 80",
        "set server web0/web-b weight 100",
        "enable health web0/web-b",
        "enable server web0/web-b",
    )
