from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.haproxy import topology

from edgekeeper.engines.haproxy.state import EMPTY, difference, kept, wanted
from edgekeeper.engines.haproxy.stats import ServerState, parse_servers_state
from edgekeeper.engines.haproxy.topology import Topology
from edgekeeper.model.backend import Member

SAID = (
    "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status "
    "srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl "
    "srv_check_port srv_check_addr srv_agent_addr srv_agent_port\n"
)


def listed(topology: Topology, **down: int) -> tuple[ServerState, ...]:
    """What HAProxy lists; ``down`` are operational states by server."""
    rows = [
        f"3 {backend} {number} {name} {host} {down.get(name.replace('-', '_'), 2)} 0 {weight} {weight} 5 15 3 4 6 0 0 0 - {port} - 0 0 - - 0"
        for number, ((backend, name), (host, port, weight)) in enumerate(wanted(topology).items(), 1)
    ]
    return parse_servers_state(SAID + "\n".join(rows) + "\n")


def test_what_is_listed_as_wanted_is_no_difference() -> None:
    one = topology({"fail_open": True, "health": {"path": "/"}})
    assert len(wanted(one)) == 9
    assert difference(one, listed(one)) is None


def test_an_address_that_is_written_another_way_is_no_difference() -> None:
    """HAProxy writes an IPv4-mapped address with dots, Python before 3.13 with hexadecimal digits."""
    one = topology(members=(Member("web-a", "::ffff:c000:201", 80),))
    rows = tuple(replace(row, address="::ffff:192.0.2.1") for row in listed(one))
    assert difference(one, rows) is None
    assert kept(one, rows) != EMPTY
    assert difference(one, tuple(replace(row, address="::ffff:192.0.2.2") for row in rows)) is not None


def test_the_first_difference_is_a_sentence() -> None:
    one = topology()
    assert difference(one, listed(one)[:2]) == "server web0/web-c is not there"
    assert difference(topology(members=(Member("web-a", "192.0.2.1", 80),)), listed(one)) == "server web0/web-b is still there"
    said = difference(
        one,
        listed(topology(members=(Member("web-a", "192.0.2.9", 81, (), 5), *(Member(n, h, 80) for n, h in (("web-b", "192.0.2.2"), ("web-c", "192.0.2.3")))))),
    )
    assert said == "server web0/web-a is 192.0.2.9:81 with weight 5, not 192.0.2.1:80 with weight 100"


def test_servers_of_backends_that_are_not_ours_are_not_judged() -> None:
    one = topology()
    other = topology({"name": "another"})
    assert difference(one, (*listed(one), *listed(other))) is None


def test_the_next_worker_is_told_of_the_servers_that_stay_what_they_are() -> None:
    one = topology()
    moved = replace(
        one, services=(replace(one.services[0], servers=(replace(one.services[0].servers[0], address="192.0.2.9:80"), *one.services[0].servers[1:])),)
    )
    text = kept(moved, listed(one, web_b=0))
    again = parse_servers_state(text)
    assert [(row.server, row.op_state) for row in again] == [("web-b", 0), ("web-c", 2)], "the moved one starts afresh, and who is DOWN stays DOWN"
    assert kept(topology({"name": "another"}), listed(one)) == EMPTY


@given(st.lists(st.integers(0, 2), min_size=3, max_size=3), st.sets(st.sampled_from(["web-a", "web-b", "web-c"])))
def test_nothing_that_changed_is_kept_and_nothing_that_stayed_is_lost(states: list[int], moved: set[str]) -> None:
    one = topology()
    servers = tuple(replace(s, weight=7) if s.name in moved else s for s in one.services[0].servers)
    new = replace(one, services=(replace(one.services[0], servers=servers),))
    rows = listed(one, web_a=states[0], web_b=states[1], web_c=states[2])
    again = parse_servers_state(kept(new, rows))
    assert {row.server: row.op_state for row in again} == {row.server: row.op_state for row in rows if row.server not in moved}
